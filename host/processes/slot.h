#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/messages/slot_file.h"

namespace muster {

/// Makes a fresh, empty slot file for a worker, so that nothing of its predecessor is read. Errors
/// name the path.
absl::Status ResetSlot(const std::string& path);

/// What a worker's process left in its slot; none if it began no shard, or if `path` is empty.
std::optional<SlotRecord> ReadSlot(const std::string& path);

}  // namespace muster
