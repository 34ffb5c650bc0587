#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scaler/core/plan.h"
#include "scaler/core/resources.h"
#include "scaler/launcher/cgroup_tree.h"
#include "scaler/launcher/node_command.h"
#include "scaler/launcher/node_sockets.h"
#include "scaler/launcher/owned_fd.h"
#include "scaler/launcher/process_tree.h"
#include "scaler/launcher/supervise.h"

namespace muster::scaler {

/// What a node uses, and used since it was started.
struct NodeUsage {
  /// Counted and limited by the kernel, in a control group. Else read from /proc: memory is what is
  /// resident, without files, and shared pages count for each process.
  bool kernel_limits = false;
  std::chrono::microseconds cpu{0};
  std::chrono::microseconds throttled{0};
  uint64_t memory_bytes = 0;        // page cache that can be dropped is left out
  uint64_t memory_peak_bytes = 0;   // page cache included; 0 = not known
  uint64_t memory_limit_bytes = 0;  // in force; 0 = none
  /// PSI "some", 10 s; -1 = not known.
  double memory_pressure_percent = -1;
  double cpu_pressure_percent = -1;
};

/// What the control group of a node counts, and what it does not count of the CPU: `tree_cpu`, of
/// its processes, which is asked for only then.
NodeUsage UsageOf(const CgroupUsage& group,
                  const std::function<std::chrono::microseconds()>& tree_cpu);

/// Starts nodes as processes of this machine, each below a `muster supervise` that outlives the
/// calling process, and controls those that an earlier one started. However often the caller dies,
/// no exit is lost: a supervising process keeps it until Release(). Everything dies when the life
/// ends (supervise.h).
///
/// Belongs to one thread. The calling process becomes a sub-reaper; when it dies, its supervising
/// processes fall to the one above.
class NodeLauncher {
 public:
  struct Options {
    /// The program whose verb `supervise` is run.
    std::string program;
    /// Where `<node>.log` goes; must exist.
    std::string log_directory;
    uint64_t log_bytes_max = 16 << 20;
    /// Of the sockets; made when it is not there.
    std::string socket_directory;
    /// The reading end of the pipe whose end is the end of every node; -1 = none.
    int life_fd = -1;
    /// Stays open until every node is gone (a lock); -1 = none.
    int held_fd = -1;
    /// Names the run's control groups (CgroupTree); "" = none are wanted.
    std::string run_id;
  };
  static absl::StatusOr<NodeLauncher> Open(Options options);
  NodeLauncher(NodeLauncher&&) = default;
  NodeLauncher& operator=(NodeLauncher&&) = delete;
  /// Nodes run on.
  ~NodeLauncher();

  /// "" = the kernel enforces limits on memory and CPU. Else what is missing, why, what is done
  /// instead, and what people can do about it.
  const std::string& limits_remark() const { return limits_remark_; }

  /// What earlier processes left: connects to every supervising process that lives; what it knows
  /// comes as reports. To be called once, before anything else. Errors: a socket that cannot be
  /// used.
  absl::StatusOr<std::vector<FoundNode>> Find();
  /// Ends one of those found, whose exit nobody wants to hear.
  void Discard(const FoundNode& node);

  /// SIGKILL was the exit of a node that died, together with its supervising process, before this
  /// launcher was there: its report, with what its control group tells.
  ProcessReport DeathReport(const std::string& node, uint32_t start) const;

  /// Starts a node within `limits`. Without control groups, or when its own cannot be made or
  /// entered (which is logged), its `supervise` looks at its memory ten
  /// times a second, and kills it above the limit, and a limit on CPU is passed over. Its start,
  /// and every failure that comes later (a command that cannot be executed ends with exit 127 or
  /// 126), arrives as a report. Requires: not attached(name).
  absl::Status Start(const NodeCommand& command, uint32_t start, const Resources& limits);
  /// Enforced at once, on the running node; both limits are written. Errors: NotFound when it does
  /// not run; FailedPrecondition, and nothing is changed, for a memory limit below what it uses,
  /// and, where CPU cannot be limited (limits_remark()), for another limit on CPU than before.
  absl::Status SetLimits(const std::string& node, const Resources& limits);
  /// Of the present life. Errors: NotFound when the node does not run; Unavailable when its
  /// supervising process has not been heard of, and no control group tells enough.
  absl::StatusOr<NodeUsage> ReadUsage(const std::string& node);
  /// The stacks of all threads of the node go into its log soon, in lines that begin with
  /// kLogAside; each thread stands still for some milliseconds. What cannot be had is said there.
  /// Errors: NotFound when it does not run.
  absl::Status DumpStacks(const std::string& node);
  /// SIGTERM now, SIGKILL after `timeout`. Nothing happens when the node does not run.
  void Stop(const std::string& node, std::chrono::milliseconds timeout);
  /// SIGKILL now.
  void Kill(const std::string& node);
  /// The exit has been heard by everybody: the supervising process ends.
  void Release(const std::string& node);

  /// Waits until a node has something to report, one of `wake_fds` is readable, or `timeout`
  /// passed; returns the reports, oldest first. A start is reported once, and so is an exit, to
  /// each caller in a row. After an exit's report everything the node had started is gone.
  std::vector<ProcessReport> Wait(std::chrono::milliseconds timeout,
                                  const std::vector<int>& wake_fds);

  /// Every node has ended and the run is over: removes its control groups.
  void RemoveGroups();

  /// It runs, or its exit is not released.
  bool attached(const std::string& node) const { return nodes_.contains(node); }
  std::string LogPath(const std::string& node) const;

 private:
  struct Node {
    uint32_t start = 0;
    OwnedFd connection;
    pid_t child = -1;                 // the supervising process, when this process started it
    OwnedFd supervisor;               // a pidfd of it
    OwnedFd process;                  // a pidfd of the command
    pid_t supervisor_pid = 0;         // 0: it has not spoken to this process yet
    pid_t pid = 0;                    // of the command
    uint64_t memory_limit_bytes = 0;  // that the supervising process watches
    std::optional<double> cpus;       // wanted; none: not known to this process
    uint64_t memory_peak_bytes = 0;   // of what was read from /proc
    bool grouped = true;              // as far as is known
    bool told_start = false;
    bool over = false;  // the exit was reported
  };

  NodeLauncher(Options options, NodeSockets sockets);
  void Send(const Node& node, const SuperviseCommand& command);
  void Read(const std::string& name, Node* node, std::vector<ProcessReport>* reports);
  void Take(const std::string& name, const SuperviseReport& state, Node* node,
            std::vector<ProcessReport>* reports);
  /// The supervising process died without a word, and the command with it.
  void Bury(const std::string& name, Node* node, std::vector<ProcessReport>* reports);
  /// Nothing, and logged, when it cannot be made.
  std::optional<Cgroup> MakeGroup(const std::string& node, uint32_t start,
                                  const Resources& limits) const;
  /// Nothing when the node is in none.
  std::optional<Cgroup> GroupOf(const std::string& name, const Node& node) const;
  std::optional<Cgroup> GroupOf(const std::string& name, uint32_t start) const;
  absl::StatusOr<Node*> Running(const std::string& node);
  /// An exit, with what the node's control group tells of memory, or else its supervising process.
  ProcessReport ExitReport(const std::string& name, const SuperviseReport& state) const;
  void ReapLeaving();
  Spared OwnChildren(pid_t but) const;

  Options options_;
  NodeSockets sockets_;
  CgroupTree groups_;
  std::string limits_remark_;
  std::map<std::string, Node> nodes_;
  std::vector<pid_t> leaving_;  // released children that have not ended
};

}  // namespace muster::scaler
