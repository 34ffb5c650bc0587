#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

#include "absl/status/statusor.h"

namespace muster {

/// The usage of all processes below one process, from /proc, for machines without control groups.
struct TreeUsage {
  /// The CPU time since the first process began. Processes that have ended are included.
  std::chrono::microseconds cpu{0};
  /// Resident memory without files, because no other process can get it. If several of the
  /// processes share a page, it counts for each.
  uint64_t memory_bytes = 0;
};

/// Reads the usage below `root`, without `root` itself. It costs a few file reads for each process
/// and thread, and stops none. Processes that end meanwhile are left out, and so is the process
/// `but`.
TreeUsage ReadTreeUsage(pid_t root, pid_t but = 0);

/// The usage of this process alone. NotFound if there is no such process.
absl::StatusOr<TreeUsage> ReadProcessUsage(pid_t pid);

/// The same as memory_bytes, but a shared page counts once. The more memory the processes have, the
/// more this costs.
uint64_t ReadTreeMemory(pid_t root, pid_t but = 0);

/// Checks regularly whether the processes below one process stay below a limit. Not thread-safe.
class MemoryWatch {
 public:
  static constexpr std::chrono::milliseconds kInterval{100};

  /// 0 = none.
  void set_limit(uint64_t bytes) { limit_bytes_ = bytes; }
  uint64_t limit_bytes() const { return limit_bytes_; }
  /// The largest usage that was seen. While the sum over the processes is below the limit, it is
  /// that sum.
  uint64_t peak_bytes() const { return peak_bytes_; }

  /// True if they use more than the limit now. The process `but` does not count.
  bool IsExceeded(pid_t root, pid_t but = 0);

 private:
  uint64_t limit_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
};

}  // namespace muster
