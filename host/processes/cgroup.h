#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptors.h"
#include "host/exit_status.h"
#include "host/resources.h"

/// Control groups of Linux, versions 1 and 2: limits that the kernel enforces, and its account of
/// what was used.
namespace muster {

enum class CgroupBackend : uint8_t { kNone, kV1, kV2 };

/// 0 = not limited, each for itself.
struct CgroupLimits {
  uint64_t memory_bytes = 0;  // swap included: what does not fit is killed, not swapped
  double cpus = 0;            // cores; at least 0.01
};

/// What the processes of a group use, and used since it was made. Of its members `cpu` is absent
/// where this kernel does not count it (version 1 without cpuacct, and no version 2); the peak is
/// 0, and pressure absent, where it does not say.
struct CgroupUsage : NodeUsage {
  uint64_t oom_kills = 0;  // by the kernel, for memory, whoever was short of it
  /// The limit of this very group was reached, and nothing could be dropped; with version 1, which
  /// does not count that: it was reached once, and there is little page cache now.
  bool limit_reached = false;
};

/// Whose shortage the kernel killed for: that of the group, at its own limit, or of the machine (or
/// a group above). With version 1, a group whose page cache reached its limit before, and was taken
/// from it when the machine was short, counts as the former.
MemoryKill KillOf(const CgroupUsage& usage);

/// Enters the groups whose cgroup.procs are `fds`: the calling process, and whatever it starts.
/// Async-signal-safe, for a child between fork and exec. 0, or errno.
int JoinCgroup(const int* fds, size_t count) noexcept;

/// The group of one life of a node: one folder, or with version 1 one per controller. Its
/// destructor leaves the group as it is. Movable; not thread-safe.
class Cgroup {
 public:
  /// Enforced at once, on what runs too. Both limits are always written, so that what others wrote
  /// is undone. Errors name the file; FailedPrecondition, and nothing changed, for a memory limit
  /// below what is used now: version 2 would kill.
  absl::Status SetLimits(const CgroupLimits& limits);
  absl::StatusOr<CgroupUsage> ReadUsage() const;
  /// Makes join_fds().
  absl::Status OpenToJoin();
  /// For JoinCgroup; close-on-exec, open as long as this object lives. Whoever has one of them
  /// open, a child that inherited it too, owns the group: the run is not dead
  /// (CgroupTree::RemoveDead).
  std::vector<int> join_fds() const;
  /// CPU can be limited as well; memory always can. Where not, its use is counted all the same.
  bool has_cpu() const { return !paths_.cpu.empty(); }
  /// Errors: FailedPrecondition while processes are in it.
  absl::Status Remove() const;

 private:
  friend class CgroupTree;
  bool exists() const;
  /// Folders; "" = there is no such controller. With version 2 all are one.
  struct Paths {
    std::string memory, cpu, cpuacct, unified;
    std::vector<std::string> Distinct() const;
  };
  Cgroup(CgroupBackend backend, Paths paths) : backend_(backend), paths_(std::move(paths)) {}

  absl::Status SetMemoryV1(uint64_t bytes) const;
  absl::Status SetMemoryV2(uint64_t bytes) const;
  absl::Status SetCpus(double cpus) const;
  absl::Status ReadMemory(CgroupUsage* usage) const;
  absl::Status ReadCpu(CgroupUsage* usage) const;

  CgroupBackend backend_;
  Paths paths_;
  std::vector<OwnedFd> join_fds_;
};

}  // namespace muster
