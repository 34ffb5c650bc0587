#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/messages/slot_file.h"

namespace muster {

/// Makes a new, empty slot file for a worker, so that nothing of an earlier process is read. Errors
/// name the path.
absl::Status ResetSlot(const std::string& path);

/// What a worker's process has left in its slot. None if it began no shard, or if `path` is empty.
std::optional<SlotRecord> ReadSlot(const std::string& path);

}  // namespace muster
