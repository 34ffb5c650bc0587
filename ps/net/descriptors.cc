#include "ps/net/descriptors.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"

namespace muster::ps {
namespace {

/// Fewer of a kind would serve nobody.
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
        fmt::format("this process may have {} open files, a server with {} threads needs at least "
                    "{}: raise the limit (ulimit -n)",
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

absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t wanted) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return ErrnoStatus(errno, "cannot read the limit of open files");
  }
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  // Whoever may not raise it goes on with what there is.
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

}  // namespace muster::ps
