#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace muster {

/// "dataset/epoch/index" as `muster shards` prints it; InvalidArgument otherwise.
absl::StatusOr<v1::ShardId> ParseShardId(const std::string& text);
/// The reverse.
std::string ShardIdToText(const v1::ShardId& id);

}  // namespace muster
