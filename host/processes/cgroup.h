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

/// Control groups of Linux, versions 1 and 2: the kernel enforces their limits and measures their
/// usage.
namespace muster {

enum class CgroupBackend : uint8_t { kNone, kV1, kV2 };

/// 0 means that the resource is not limited.
struct CgroupLimits {
  uint64_t memory_bytes = 0;  // includes swap: what does not fit is killed, not swapped
  double cpus = 0;            // cores; at least 0.01
};

/// What the processes of a group use, and have used since the group was created. `cpu` is absent if
/// the kernel does not count it (version 1 without cpuacct). If the kernel does not report the peak
/// or the pressure, the peak is 0 and the pressure is absent.
struct CgroupUsage : NodeUsage {
  uint64_t oom_kills = 0;  // by the kernel, because the group or the machine was short
  /// The limit of this group itself was reached, and no page could be dropped. Version 1 does not
  /// count that. There it means that the limit was reached once, and that there is little page
  /// cache now.
  bool limit_reached = false;
};

/// Why the kernel killed: because the group was at its own limit, or because the machine (or a
/// group above) had no memory left. Version 1 may give a wrong answer: if page cache once filled
/// the group to its limit and was dropped later because the machine needed memory, the answer is
/// the group's limit.
MemoryKill KillOf(const CgroupUsage& usage);

/// The calling process enters the groups whose cgroup.procs are `fds`, with everything that it
/// starts. Async-signal-safe, for a child between fork and exec. Returns 0, or errno.
int JoinCgroup(const int* fds, size_t count) noexcept;

/// The group of one life of a node. It is one folder, or with version 1 one folder per controller.
/// The destructor leaves the group as it is. Movable; not thread-safe.
class Cgroup {
 public:
  /// Sets both limits, also for running processes, and overwrites values that others have set.
  /// Errors name the file. FailedPrecondition, and nothing changes, if the memory limit is below
  /// the present usage, because version 2 would kill.
  absl::Status SetLimits(const CgroupLimits& limits);
  absl::StatusOr<CgroupUsage> ReadUsage() const;
  /// The usage of the group in which this process is, such as a container's. `root` is put before
  /// every path. NotFound if no memory controller counts it.
  static absl::StatusOr<CgroupUsage> ReadOwnUsage(const std::string& root = "");
  /// Opens the files for join_fds().
  absl::Status OpenToJoin();
  /// Descriptors for JoinCgroup. They are close-on-exec, and open as long as this object lives.
  /// While any process has one of them open (also a child that inherited it), the group has an
  /// owner, and the run is not dead (CgroupTree::RemoveDead).
  std::vector<int> join_fds() const;
  /// True if CPU can be limited, too. Memory always can. CPU usage is counted in any case.
  bool has_cpu() const { return !paths_.cpu.empty(); }
  /// Errors: FailedPrecondition while the group has processes.
  absl::Status Remove() const;

 private:
  friend class CgroupTree;
  bool exists() const;
  /// The folder for each controller; "" if there is no such controller. With version 2, all are the
  /// same.
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
  bool was_full_ = false;  // version 1: it was once at a limit that has been raised since
};

}  // namespace muster
