#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Control groups of Linux: limits that the kernel enforces, and its account of what was used. The
/// only place that knows their files. Versions 1 and 2; where neither can be had, backend() is
/// kNone and says why.
namespace muster {

enum class CgroupBackend : uint8_t { kNone, kV1, kV2 };
std::string ToString(CgroupBackend backend);  // "none", "v1", "v2"

/// 0 = not limited, each for itself.
struct CgroupLimits {
  uint64_t memory_bytes = 0;  // swap included: what does not fit is killed, not swapped
  double cpus = 0;            // cores; at least 0.01
};

/// What the processes of a group use, and used since it was made.
struct CgroupUsage {
  /// Now, less page cache that the kernel can take back at once.
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;   // page cache included; 0 = this kernel does not say
  uint64_t memory_limit_bytes = 0;  // in force; 0 = none
  uint64_t oom_kills = 0;           // by the kernel, for memory
  std::chrono::microseconds cpu{0};
  std::chrono::microseconds throttled{0};
  uint64_t throttled_periods = 0;
  /// PSI "some", 10 s; -1 = this kernel does not say.
  double memory_pressure_percent = -1;
  double cpu_pressure_percent = -1;
};

/// Enters the groups whose cgroup.procs are `fds`: the calling process, and whatever it starts.
/// Async-signal-safe, for a child between fork and exec. 0, or errno.
int JoinCgroup(const int* fds, size_t count) noexcept;

/// The group of one node: one folder, or with version 1 one per controller. Its destructor leaves
/// the group as it is. Movable; not thread-safe.
class Cgroup {
 public:
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&&) = delete;
  ~Cgroup();

  /// Enforced at once, on what runs too. Both limits are always written, so that what others wrote
  /// is undone. Errors name the file; FailedPrecondition, and nothing changed, for a memory limit
  /// below what is used now: version 2 would kill.
  absl::Status SetLimits(const CgroupLimits& limits);
  absl::StatusOr<CgroupUsage> ReadUsage() const;
  /// For JoinCgroup; close-on-exec, open as long as this object lives.
  const std::vector<int>& join_fds() const { return join_fds_; }
  /// CPU can be limited as well; memory always can.
  bool has_cpu() const { return !paths_.cpu.empty(); }
  /// Errors: FailedPrecondition while processes are in it.
  absl::Status Remove();

 private:
  friend class CgroupTree;
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
  std::vector<int> join_fds_;
};

/// The groups of one run: `muster-<run id>/<node>` below the group of this process. A value;
/// not thread-safe.
class CgroupTree {
 public:
  struct Options {
    /// Letters, digits, '-' and '_', at most 64.
    std::string run_id;
    /// Put before every path: "" = this machine's; tests have trees of their own.
    std::string root;
    /// Version 2 lets a group hand down controllers only when it has no processes itself: these,
    /// and no others, may be moved from our own group into one below it.
    std::vector<pid_t> movable;
  };

  /// Finds out what this machine has and makes the run's group. Never fails: backend() says what
  /// was found, remark() what was not and why.
  static CgroupTree Detect(const Options& options);

  CgroupBackend backend() const { return backend_; }
  /// "" = memory and CPU can be limited; else what cannot, why, and what people can do about it.
  const std::string& remark() const { return remark_; }

  /// The group of `node`, made when it is not there: a restarted scaler finds those of its nodes.
  /// Errors: FailedPrecondition without backend; InvalidArgument for a name with other characters
  /// than run ids have.
  absl::StatusOr<Cgroup> Open(const std::string& node) const;

  /// Removes the groups that earlier runs left beside this one's, where `is_alive(run id)` is
  /// false. What still has processes in it stays. Returns the run ids whose groups are gone.
  std::vector<std::string> RemoveDead(
      const std::function<bool(const std::string& run_id)>& is_alive) const;
  /// Removes the run's group and all nodes' below it. Errors: as Cgroup::Remove.
  absl::Status Remove() const;

 private:
  bool FindV1(const std::string& mountinfo, const std::string& own);
  bool FindV2(const std::string& mountinfo, const std::string& own);
  absl::Status HandDown(const std::string& own) const;
  absl::Status MoveAside(const std::string& own) const;
  Cgroup::Paths Below(const std::string& name) const;

  Options options_;
  CgroupBackend backend_ = CgroupBackend::kNone;
  std::string remark_;
  Cgroup::Paths own_;  // our own groups, in which the run's is made
};

}  // namespace muster
