#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "ps/net/lane.h"

namespace muster::ps {

/// File descriptors that connections may not use: for snapshots, exports, the master, logs, and a
/// lane's own sockets. Otherwise a flood of connections would leave none for the server's files.
inline constexpr uint64_t kReservedDescriptors = 128;
inline constexpr uint64_t kReservedDescriptorsPerLane = 8;

/// Descriptors that a server with this many lanes needs for all connections that `limits` allow.
uint64_t DescriptorsFor(const LaneLimits& limits, uint32_t lanes);

/// The limits that fit into `descriptors`: connections of both kinds are cut in proportion.
/// kFailedPrecondition if only a few or none would be left; the message has the number that is
/// needed. Pure.
absl::StatusOr<LaneLimits> FitLimits(const LaneLimits& limits, uint32_t lanes,
                                     uint64_t descriptors);

}  // namespace muster::ps
