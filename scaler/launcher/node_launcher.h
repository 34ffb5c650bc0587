#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scaler/core/plan.h"
#include "scaler/launcher/node_command.h"
#include "scaler/launcher/node_sockets.h"
#include "scaler/launcher/process_tree.h"
#include "scaler/launcher/supervise.h"

namespace muster::scaler {

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
  };
  static absl::StatusOr<NodeLauncher> Open(Options options);
  NodeLauncher(NodeLauncher&&) = default;
  NodeLauncher& operator=(NodeLauncher&&) = delete;
  /// Nodes run on.
  ~NodeLauncher();

  /// What earlier processes left: connects to every supervising process that lives; what it knows
  /// comes as reports. To be called once, before anything else. Errors: a socket that cannot be
  /// used.
  absl::StatusOr<std::vector<FoundNode>> Find();
  /// Ends one of those found, whose exit nobody wants to hear.
  void Discard(const FoundNode& node);

  /// Starts a node. Its start, and every failure that comes later (a command that cannot be
  /// executed ends with exit 127 or 126), arrives as a report. Requires: not attached(name).
  absl::Status Start(const NodeCommand& command, uint32_t start);
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

  /// It runs, or its exit is not released.
  bool attached(const std::string& node) const { return nodes_.contains(node); }
  std::string LogPath(const std::string& node) const;

 private:
  /// A descriptor that closes itself.
  class Fd {
   public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~Fd();
    int get() const { return fd_; }

   private:
    int fd_ = -1;
  };
  struct Node {
    uint32_t start = 0;
    Fd connection;
    pid_t child = -1;  // the supervising process, when this process started it
    Fd supervisor;     // a pidfd of it
    Fd process;        // a pidfd of the command
    pid_t pid = 0;     // of the command
    bool told_start = false;
    bool over = false;  // the exit was reported
  };

  NodeLauncher(Options options, NodeSockets sockets);
  void Send(const Node& node, uint32_t kind, uint32_t timeout_ms);
  void Read(const std::string& name, Node* node, std::vector<ProcessReport>* reports);
  void Take(const std::string& name, const SuperviseReport& state, Node* node,
            std::vector<ProcessReport>* reports);
  /// The supervising process died without a word, and the command with it.
  void Bury(const std::string& name, Node* node, std::vector<ProcessReport>* reports);
  void ReapLeaving();
  Spared OwnChildren(pid_t but) const;

  Options options_;
  NodeSockets sockets_;
  std::map<std::string, Node> nodes_;
  std::vector<pid_t> leaving_;  // released children that have not ended
};

}  // namespace muster::scaler
