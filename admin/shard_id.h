#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace muster {

/// Parses "dataset/epoch/index", the form of `muster shards`. InvalidArgument for any other text.
absl::StatusOr<v1::ShardId> ParseShardId(const std::string& text);
/// The reverse.
std::string ShardIdToText(const v1::ShardId& id);

}  // namespace muster
