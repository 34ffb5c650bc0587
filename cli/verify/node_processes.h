#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptors.h"
#include "base/words/types.h"
#include "verify/fault_plan.h"

namespace muster::verify {

/// A node of the job as the machine shows it. No process is asked, because it may be killed. Name
/// and start identify the process. Signals need the pid, which may be reused.
struct NodeProcess {
  pid_t pid = 0;
  Role role = Role::kWorker;
  std::string name;   // "worker-1", "ps-0", "master", "scaler"; empty: not known
  StartNumber start;  // 0: not known
  friend bool operator==(const NodeProcess&, const NodeProcess&) = default;
};

/// The programs that the job's processes execute.
struct NodePrograms {
  std::string muster;   // master, scaler and servers
  std::string trainer;  // workers
};

/// The words that /proc shows of a process.
struct ProcessWords {
  std::vector<std::string> command_line;
  std::vector<std::string> environment;  // "MUSTER_START=2"
};

/// The node to which these words belong. None if it is not a node (`muster supervise`, `muster
/// run`, anything else). Pure.
std::optional<NodeProcess> ClassifyProcess(pid_t pid, const ProcessWords& words,
                                           const NodePrograms& programs);

/// The nodes among the living descendants of the calling process, in any order.
std::vector<NodeProcess> FindNodes(const NodePrograms& programs);

/// A process that is held by a pidfd, so that a signal never hits another process with the same
/// pid. Movable.
class HeldProcess {
 public:
  /// None if the process is gone, or if another process has its pid.
  static std::optional<HeldProcess> Hold(const NodeProcess& node, const NodePrograms& programs);
  pid_t pid() const { return pid_; }
  /// Returns false if the process is gone.
  bool Send(int signal) const;

 private:
  HeldProcess(pid_t pid, OwnedFd fd) : pid_(pid), fd_(std::move(fd)) {}
  pid_t pid_;
  OwnedFd fd_;
};

}  // namespace muster::verify
