#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "ps/net/lane.h"

namespace muster::ps {

/// Connections may not use these file descriptors. They are kept for snapshots, exports, the
/// master, logs, and a lane's own sockets. Otherwise a flood of connections would leave none for
/// the server's files.
inline constexpr uint64_t kReservedDescriptors = 128;
inline constexpr uint64_t kReservedDescriptorsPerLane = 8;

/// How many descriptors a server with this many lanes needs for all connections that `limits`
/// allow.
uint64_t DescriptorsFor(const LaneLimits& limits, uint32_t lanes);

/// The limits that fit into `descriptors`. The connections of both kinds are cut in proportion.
/// kFailedPrecondition: few connections or none would be left. The message says which number is
/// needed. Pure.
absl::StatusOr<LaneLimits> FitLimits(const LaneLimits& limits, uint32_t lanes,
                                     uint64_t descriptors);

}  // namespace muster::ps
