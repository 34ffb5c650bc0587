#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "verify/fault_plan.h"

namespace muster::verify {

/// A node of the job as the machine shows it: nobody who may be killed is asked.
struct NodeProcess {
  pid_t pid = 0;
  Role role = Role::kWorker;
  std::string name;  // of a server: "ps-0"; else empty
};

/// What is started where.
struct NodePrograms {
  std::string muster;   // master, scaler and servers
  std::string trainer;  // workers
};

/// The node that has this command line; nothing when it is no node (`muster supervise`, `muster
/// run`, anything else). Pure.
std::optional<NodeProcess> ClassifyProcess(pid_t pid, const std::vector<std::string>& command_line,
                                           const NodePrograms& programs);

/// The nodes among the living descendants of the calling process, in no particular order.
std::vector<NodeProcess> FindNodes(const NodePrograms& programs);

/// A process held so that its pid, should another process get it, means nobody. Movable.
class HeldProcess {
 public:
  /// Nothing when the process is gone, or is no longer what it was.
  static std::optional<HeldProcess> Hold(const NodeProcess& node, const NodePrograms& programs);
  HeldProcess(HeldProcess&& other) noexcept;
  HeldProcess& operator=(HeldProcess&& other) noexcept;
  ~HeldProcess();
  pid_t pid() const { return pid_; }
  /// False when the process is gone.
  bool Send(int signal) const;

 private:
  HeldProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  pid_t pid_;
  int fd_;
};

}  // namespace muster::verify
