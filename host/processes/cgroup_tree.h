#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptors.h"
#include "host/processes/cgroup.h"

namespace muster {

/// The groups of one run: `muster-<run id>/<node>.<start>` below the group of this process.
/// Movable; not thread-safe.
///
/// Locks (flock) on its groups show that a run is alive; they end with the processes that have
/// them.
class CgroupTree {
 public:
  struct Options {
    /// Letters, digits, '-' and '_', at most 64.
    std::string run_id;
    /// Put before every path: "" = this machine's; tests have trees of their own.
    std::string root;
    /// With version 2, a group can delegate controllers only if it has no processes itself. Only
    /// these
    /// processes may be moved from our own group into one below it.
    std::vector<pid_t> movable;
  };

  /// Detects what this machine has, and creates the run's group. Never fails: backend() says what
  /// was
  /// found, and remark() what was not found and why.
  static CgroupTree Detect(const Options& options);

  CgroupBackend backend() const { return backend_; }
  /// "" if memory and CPU can be limited. Otherwise what cannot, why, and what the user can do.
  const std::string& remark() const { return remark_; }

  /// Creates an empty group for start number `start` of `node`; its counters begin at 0. Groups of
  /// this and former starts are removed, and the processes in them are killed. Errors:
  /// FailedPrecondition without backend; InvalidArgument for a name with other characters than run
  /// ids have.
  absl::StatusOr<Cgroup> Make(const std::string& node, uint32_t start) const;
  /// One that this or an earlier process made. NotFound when there is none; else as Make.
  absl::StatusOr<Cgroup> Open(const std::string& node, uint32_t start) const;

  /// Removes the groups of earlier runs beside this one's that have no owner any more (neither a
  /// CgroupTree nor a process with descriptors of Cgroup::OpenToJoin), and kills the processes in
  /// them. Returns the run ids of the removed groups.
  std::vector<std::string> RemoveDead() const;
  /// Removes the run's group and all node groups below it, and kills the processes in them. Errors:
  /// as Cgroup::Remove.
  absl::Status Remove() const;

 private:
  bool FindV1(const std::string& mountinfo, const std::string& own);
  bool FindV2(const std::string& mountinfo, const std::string& own);
  /// Makes the run's group in one hierarchy; each is locked, since others may share only some.
  absl::Status Own(const std::string& run);
  absl::Status HandDown(const std::string& own) const;
  absl::Status MoveAside(const std::string& own) const;
  Cgroup::Paths Below(const std::string& name) const;
  absl::StatusOr<Cgroup> At(const std::string& node, uint32_t start) const;

  Options options_;
  CgroupBackend backend_ = CgroupBackend::kNone;
  std::string remark_;
  std::vector<OwnedFd> locks_;  // of the run's groups
  Cgroup::Paths own_;           // our own groups, in which the run's is made
};

}  // namespace muster
