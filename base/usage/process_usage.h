#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace muster {

/// What a process uses according to its own measurement. If its control group contains nothing but
/// the process, its ancestors and its children, it is the usage of the container; otherwise that of
/// this process alone. 0 means not known.
struct ProcessUsage {
  static constexpr const char* kName = "ProcessUsage";
  uint64_t cpu_us = 0;
  uint64_t throttled_us = 0;
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;
  uint64_t memory_limit_bytes = 0;
  static void Fields(auto& f, auto& u) {
    f(1, "cpu_us", u.cpu_us, {"Processor time; running total"});
    f(2, "throttled_us", u.throttled_us, {"Held up by a CPU limit; running total"});
    f(3, "memory_bytes", u.memory_bytes,
      {.says = "Now, without page cache that can be dropped", .gauge = true});
    f(4, "memory_peak_bytes", u.memory_peak_bytes, {.says = "0: not known", .gauge = true});
    f(5, "memory_limit_bytes", u.memory_limit_bytes,
      {.says = "0: not limited, or not known", .gauge = true});
  }
  friend bool operator==(const ProcessUsage&, const ProcessUsage&) = default;
};

/// Measures this process, at most once a second. For one thread.
class ProcessUsageMeter {
 public:
  /// The folders are arguments for tests.
  explicit ProcessUsageMeter(std::string proc = "/proc", std::string groups = "/sys/fs/cgroup");

  /// The newest measurement. It reads a few small files, and never fails.
  const ProcessUsage& Read(TimePoint now);

 private:
  /// True if the control group at the root of `groups_` belongs to this process.
  bool HasOwnGroup() const;
  std::optional<uint64_t> ParentOf(uint64_t pid) const;
  ProcessUsage OfGroup() const;
  ProcessUsage OfProcess() const;

  std::string proc_;
  std::string groups_;
  std::optional<bool> own_group_;  // found out at the first reading
  std::optional<TimePoint> read_at_;
  ProcessUsage usage_;
};

}  // namespace muster
