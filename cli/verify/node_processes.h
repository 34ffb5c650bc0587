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

/// A node of the job as the machine shows it, without a question to a process that may be killed.
/// Name and start identify the process. The pid, which signals need, may be reused.
struct NodeProcess {
  pid_t pid = 0;
  Role role = Role::kWorker;
  std::string name;   // "worker-1", "ps-0", "master", "scaler"; empty: not known
  StartNumber start;  // 0: not known
  friend bool operator==(const NodeProcess&, const NodeProcess&) = default;
};

/// What is started where.
struct NodePrograms {
  std::string muster;   // master, scaler and servers
  std::string trainer;  // workers
};

/// A process as /proc shows it.
struct ProcessWords {
  std::vector<std::string> command_line;
  std::vector<std::string> environment;  // "MUSTER_START=2"
};

/// The node that has these words; nothing when it is no node (`muster supervise`, `muster run`,
/// anything else). Pure.
std::optional<NodeProcess> ClassifyProcess(pid_t pid, const ProcessWords& words,
                                           const NodePrograms& programs);

/// The nodes among the living descendants of the calling process, in no particular order.
std::vector<NodeProcess> FindNodes(const NodePrograms& programs);

/// A process, held by a pidfd. So if another process gets its pid, that one is not hit. Movable.
class HeldProcess {
 public:
  /// None if the process is gone, or is another one now.
  static std::optional<HeldProcess> Hold(const NodeProcess& node, const NodePrograms& programs);
  pid_t pid() const { return pid_; }
  /// False when the process is gone.
  bool Send(int signal) const;

 private:
  HeldProcess(pid_t pid, OwnedFd fd) : pid_(pid), fd_(std::move(fd)) {}
  pid_t pid_;
  OwnedFd fd_;
};

}  // namespace muster::verify
