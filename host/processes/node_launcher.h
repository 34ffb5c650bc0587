#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptors.h"
#include "host/found_node.h"
#include "host/messages.h"
#include "host/processes/node_sockets.h"
#include "host/processes/process_tree.h"
#include "host/processes/spawn.h"
#include "host/processes/supervise.h"

namespace muster {

/// What a launcher reports on a process.
using LaunchReport = std::variant<NodeStarted, NodeExited>;

/// Starts processes on this machine, each below its own `muster supervise` (supervise.h), and
/// reports how they end.
///
/// Without sockets, everything that the calling process started dies with it, also grandchildren,
/// however it dies. With sockets, nodes outlive it, and it also controls the nodes that an earlier
/// process started. No exit is lost, because the supervising process keeps it until Release().
/// Everything dies when the pipe of `life_fd` is closed.
///
/// Belongs to one thread, which must live as long as the launcher: the kernel ties the parent-death
/// signal to the thread that started a child. The calling process becomes a sub-reaper.
class NodeLauncher {
 public:
  struct Options {
    /// A program. Its verb `supervise` is started.
    std::string program;
    /// The folder for `<node>.log`. It must exist.
    std::string log_directory;
    uint64_t log_bytes_max = 16 << 20;
    /// The reading end of a pipe. When the pipe is closed, every node ends. -1 = none.
    int life_fd = -1;
    /// A descriptor that stays open until everything is gone, even if the launcher is killed. So a
    /// file lock on it shows if any process of a run is left. -1 = none.
    int held_fd = -1;
    /// Supervising processes with --life-fd become children of this process if their parent dies.
    /// If true, they are left alone as long as the launcher lives.
    bool spare_supervisors = false;
    /// Adds to an exit what else the caller knows. `state` is the last report of `supervise`.
    std::function<void(const SuperviseReport& state, NodeExited* exit)> complete;
  };
  explicit NodeLauncher(Options options, std::optional<NodeSockets> sockets = std::nullopt);
  NodeLauncher(const NodeLauncher&) = delete;
  NodeLauncher& operator=(const NodeLauncher&) = delete;
  /// Without sockets, kills every process that descends from this process and still runs, and waits
  /// until it is gone. With sockets, nodes continue to run.
  ~NodeLauncher();

  /// Takes over the nodes of earlier processes. It connects to every live supervising process,
  /// whose state then comes as a report. Call it once, before anything else. Errors: a socket
  /// cannot be used.
  absl::StatusOr<std::vector<FoundNode>> Find();
  /// Ends one of the found nodes; its exit is not reported.
  void Discard(const FoundNode& node);

  /// One life of a node.
  struct Life {
    uint32_t start = 0;                // its number; 0: starts are not counted
    uint64_t memory_limit_bytes = 0;   // watched by the supervising process; 0 = none
    std::vector<int> cgroup_fds = {};  // the control groups that the command enters
  };
  /// Its start comes as a report, and so does every later failure. A command that cannot be
  /// executed ends with exit 127 or 126. Requires: not Has(name).
  absl::Status Start(const NodeCommand& command, const Life& life);
  absl::Status Start(const NodeCommand& command) { return Start(command, Life()); }
  /// Sends SIGTERM now, and SIGKILL after `timeout`. Does nothing if the node does not run.
  void Stop(const std::string& node, std::chrono::milliseconds timeout);
  /// Sends SIGKILL now.
  void Kill(const std::string& node);
  /// Changes the memory limit that the supervising process watches.
  void LimitMemory(const std::string& node, uint64_t bytes);
  /// Soon writes the stacks of all threads of the node into its log, in lines that begin with
  /// kLogAside. Each thread is stopped for some milliseconds. If a stack is not available, a line
  /// says so. Errors: NotFound if it does not run.
  absl::Status DumpStacks(const std::string& node);
  /// With sockets: the exit was reported everywhere, so the supervising process may end.
  void Release(const std::string& node);
  /// Reaps or kills processes that a killed supervising process has left and that have become
  /// children of this process. Call it from time to time; it costs little.
  void Sweep();

  /// This descriptor is readable while there are reports.
  int wake_fd() const { return wake_.get(); }
  /// The reports since the last call, oldest first. If several processes control the nodes, one
  /// after the other, each of them gets a start and an exit once. When an exit is reported,
  /// everything that the node had started is gone.
  std::vector<LaunchReport> TakeReports();
  /// The same, but it first waits until there are reports, one of `wake_fds` is readable, or
  /// `timeout` has passed.
  std::vector<LaunchReport> Wait(std::chrono::milliseconds timeout,
                                 const std::vector<int>& wake_fds);

  /// True if the node runs or, with sockets, if its exit is not released.
  bool Has(const std::string& node) const { return nodes_.contains(node); }
  std::string LogPath(const std::string& node) const;

  /// The state of a running node.
  struct Running {
    uint32_t start = 0;
    pid_t supervisor_pid = 0;         // 0: it has not spoken to this process yet
    uint64_t memory_limit_bytes = 0;  // watched by the supervising process
    bool grouped = true;              // it is in its control groups, as far as is known
  };
  /// Errors: NotFound. The result lives until the next call that is not const.
  absl::StatusOr<const Running*> Look(const std::string& node) const;
  /// The exit of a node whose `supervise` last sent this report.
  NodeExited ExitOf(const std::string& node, const SuperviseReport& state) const;

 private:
  struct Node {
    Running known;
    OwnedFd connection;
    pid_t child = -1;    // the supervising process, if this process started it
    OwnedFd supervisor;  // a pidfd of the supervising process
    OwnedFd process;     // a pidfd of the command
    pid_t pid = 0;       // of the command
    bool told_start = false;
    bool over = false;  // the exit was reported
  };

  void Watch(const Node& node, int operation);
  absl::Status Connect(const std::string& name, Node* node);
  static void Send(const Node& node, const SuperviseCommand& command);
  void Send(const std::string& name, const SuperviseCommand& command);
  void Read(const std::string& name, Node* node, std::vector<LaunchReport>* reports);
  void Take(const std::string& name, const SuperviseReport& state, Node* node,
            std::vector<LaunchReport>* reports);
  /// Waits until the supervising process and the command are dead.
  void Bury(const Node& node);
  void Erase(const std::string& name);
  void ReapLeaving();
  /// All our running processes except `but`.
  Spared OwnChildren(pid_t but) const;

  Options options_;
  const std::optional<NodeSockets> sockets_;
  const std::string mark_;  // see Spared::mark
  const OwnedFd wake_;      // an epoll descriptor for all connections
  std::map<std::string, Node> nodes_;
  std::vector<pid_t> leaving_;  // released children that have not ended
};

}  // namespace muster
