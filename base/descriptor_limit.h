#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace muster {

/// Raises this process's limit of open files to `wanted`, or as far as the system allows it.
/// Returns the limit that is in force now, which is never lower than before. Not thread-safe.
absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t wanted);

}  // namespace muster
