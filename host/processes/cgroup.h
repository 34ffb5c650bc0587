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

/// Control groups of Linux, versions 1 and 2: limits that the kernel enforces, and the usage that
/// it measures.
namespace muster {

enum class CgroupBackend : uint8_t { kNone, kV1, kV2 };

/// 0 = not limited, each for itself.
struct CgroupLimits {
  uint64_t memory_bytes = 0;  // swap included: what does not fit is killed, not swapped
  double cpus = 0;            // cores; at least 0.01
};

/// What the processes of a group use, and have used since the group was created. `cpu` is absent if
/// the kernel does not count it (version 1 without cpuacct). If the kernel does not report them,
/// the peak is 0 and pressure is absent.
struct CgroupUsage : NodeUsage {
  uint64_t oom_kills = 0;  // by the kernel, for the group's memory or the machine's
  /// The limit of this group itself was reached, and no page could be dropped. Version 1 does not
  /// count that; there it means that the limit was reached once, and there is little page cache
  /// now.
  bool limit_reached = false;
};

/// Why the kernel killed: the group was at its own limit, or the machine (or a group above) had no
/// memory left. With version 1, if page cache filled a group to its limit once and was dropped
/// later because the machine needed it, the answer is the group's limit.
MemoryKill KillOf(const CgroupUsage& usage);

/// Enters the groups whose cgroup.procs are `fds`: the calling process, and whatever it starts.
/// Async-signal-safe, for a child between fork and exec. 0, or errno.
int JoinCgroup(const int* fds, size_t count) noexcept;

/// The group of one life of a node: one folder, or with version 1 one per controller. Its
/// destructor leaves the group as it is. Movable; not thread-safe.
class Cgroup {
 public:
  /// Takes effect at once, also for running processes. Both limits are always written, which
  /// overwrites values of others. Errors name the file; FailedPrecondition, and nothing changes,
  /// for a memory limit below the current usage, because version 2 would kill.
  absl::Status SetLimits(const CgroupLimits& limits);
  absl::StatusOr<CgroupUsage> ReadUsage() const;
  /// Of the group in which this process is, such as a container's. `root` is put before every path.
  /// NotFound if no memory controller counts it.
  static absl::StatusOr<CgroupUsage> ReadOwnUsage(const std::string& root = "");
  /// Makes join_fds().
  absl::Status OpenToJoin();
  /// For JoinCgroup; close-on-exec, open as long as this object lives. While any process has one of
  /// them open (also a child that inherited it), the group has an owner, and the run is not dead
  /// (CgroupTree::RemoveDead).
  std::vector<int> join_fds() const;
  /// True if CPU can be limited, too; memory always can. CPU usage is counted in any case.
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

  absl::Status SetMemoryV1(uint64_t bytes);
  absl::Status SetMemoryV2(uint64_t bytes) const;
  absl::Status SetCpus(double cpus) const;
  absl::StatusOr<uint64_t> ReadPeak() const;
  absl::Status ReadMemory(CgroupUsage* usage) const;
  absl::Status ReadCpu(CgroupUsage* usage) const;

  CgroupBackend backend_;
  Paths paths_;
  std::vector<OwnedFd> join_fds_;
  bool was_full_ = false;  // version 1: at a limit that was raised since
};

}  // namespace muster
