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

/// The groups of one run: `muster-<run id>/<node>.<start>`, below the group of this process.
/// Movable; not thread-safe.
///
/// Locks (flock) on its groups show that a run is alive. A lock ends when all processes that hold
/// it have ended.
class CgroupTree {
 public:
  struct Options {
    /// Letters, digits, '-' and '_', at most 64.
    std::string run_id;
    /// It is put before every path. "" is this machine; tests have trees of their own.
    std::string root;
    /// With version 2, a group can delegate controllers only if it has no processes itself. These
    /// processes, and no others, may be moved from our own group into a group below it.
    std::vector<pid_t> movable;
  };

  /// Detects what this machine has, and creates the run's group. It never fails: backend() says
  /// what was found, and remark() says what was not found, and why.
  static CgroupTree Detect(const Options& options);

  CgroupBackend backend() const { return backend_; }
  /// "" if memory and CPU can be limited. Otherwise it says what cannot, why, and what the user can
  /// do.
  const std::string& remark() const { return remark_; }

  /// Creates an empty group for start number `start` of `node`. Its counters begin at 0. Groups of
  /// this start and earlier ones are removed, and the processes in them are killed. Errors:
  /// FailedPrecondition without a backend; InvalidArgument if the name has characters that run ids
  /// may not have.
  absl::StatusOr<Cgroup> Make(const std::string& node, uint32_t start) const;
  /// Opens a group that this process or an earlier one has made. NotFound if there is none;
  /// otherwise the errors of Make.
  absl::StatusOr<Cgroup> Open(const std::string& node, uint32_t start) const;

  /// Removes groups of earlier runs that have no owner any more, and kills the processes in them.
  /// An owner is a CgroupTree, or a process with descriptors of Cgroup::OpenToJoin. Returns the run
  /// ids of the removed groups.
  std::vector<std::string> RemoveDead() const;
  /// Removes the run's group and the groups of all its nodes, and kills the processes in them.
  /// Errors are those of Cgroup::Remove.
  absl::Status Remove() const;

 private:
  bool FindV1(const std::string& mountinfo, const std::string& own);
  bool FindV2(const std::string& mountinfo, const std::string& own);
  /// Makes the run's group in one hierarchy. Each one is locked, because another run may share only
  /// some of them.
  absl::Status Own(const std::string& run);
  absl::Status HandDown(const std::string& own) const;
  absl::Status MoveAside(const std::string& own) const;
  Cgroup::Paths Below(const std::string& name) const;
  absl::StatusOr<Cgroup> At(const std::string& node, uint32_t start) const;

  Options options_;
  CgroupBackend backend_ = CgroupBackend::kNone;
  std::string remark_;
  std::vector<OwnedFd> locks_;  // of the run's groups
  Cgroup::Paths own_;           // our own groups; the run's group is made in them
};

}  // namespace muster
