#include "ps/net/connection_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::ps {
namespace {

/// A server with fewer connections of a kind would be useless.
constexpr uint64_t kConnectionsMin = 4;

uint64_t Reserved(uint32_t lanes) {
  return kReservedDescriptors + lanes * kReservedDescriptorsPerLane;
}

}  // namespace

uint64_t DescriptorsFor(const LaneLimits& limits, uint32_t lanes) {
  return Reserved(lanes) +
         uint64_t{lanes} * (uint64_t{limits.unix_connections_max} + limits.tcp_connections_max);
}

absl::StatusOr<LaneLimits> FitLimits(const LaneLimits& limits, uint32_t lanes,
                                     uint64_t descriptors) {
  if (descriptors >= DescriptorsFor(limits, lanes)) return limits;
  const uint64_t needed = Reserved(lanes) + lanes * 2 * kConnectionsMin;
  if (descriptors < needed) {
    return absl::FailedPreconditionError(
        fmt::format("this process may have {} open files, but a server with {} threads needs at "
                    "least {}; raise the limit (ulimit -n)",
                    descriptors, lanes, needed));
  }
  const uint64_t share = (descriptors - Reserved(lanes)) / lanes;
  const uint64_t wanted = uint64_t{limits.unix_connections_max} + limits.tcp_connections_max;
  const uint64_t tcp = std::clamp(share * limits.tcp_connections_max / wanted, kConnectionsMin,
                                  share - kConnectionsMin);
  LaneLimits fitting = limits;
  fitting.tcp_connections_max = static_cast<uint32_t>(tcp);
  fitting.unix_connections_max = static_cast<uint32_t>(share - tcp);
  return fitting;
}

}  // namespace muster::ps
