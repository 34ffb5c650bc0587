#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

#include "absl/status/statusor.h"

namespace muster {

/// The usage of all processes below one, from /proc, for machines without control groups.
struct TreeUsage {
  /// The CPU time since the first process began; includes processes that have ended.
  std::chrono::microseconds cpu{0};
  /// Resident, without files: what no other process can be given. A page that several of them share
  /// counts once for each.
  uint64_t memory_bytes = 0;
};

/// `root` itself is left out. Costs a few file reads for each process and thread; none is stopped.
/// What ends meanwhile is left out, and so is the process `but`.
TreeUsage ReadTreeUsage(pid_t root, pid_t but = 0);

/// The usage of this process alone. NotFound: there is none.
absl::StatusOr<TreeUsage> ReadProcessUsage(pid_t pid);

/// As memory_bytes, but a shared page counts once. Costs the more, the more memory they have.
uint64_t ReadTreeMemory(pid_t root, pid_t but = 0);

/// Checks regularly that the processes below one stay below a limit. Not thread-safe.
class MemoryWatch {
 public:
  static constexpr std::chrono::milliseconds kInterval{100};

  /// 0 = none.
  void set_limit(uint64_t bytes) { limit_bytes_ = bytes; }
  uint64_t limit_bytes() const { return limit_bytes_; }
  /// The most that was seen, or the sum over processes where that is below the limit.
  uint64_t peak_bytes() const { return peak_bytes_; }

  /// True if they now use more than the limit, without the process `but`.
  bool IsExceeded(pid_t root, pid_t but = 0);

 private:
  uint64_t limit_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
};

}  // namespace muster
