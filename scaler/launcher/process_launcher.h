#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scaler/launcher/node_command.h"
#include "scaler/launcher/process_tree.h"

namespace muster {

/// Starts processes of this machine, each below a `muster supervise` of its own, and hears how they
/// end. However the calling process dies, everything that it started dies too, grandchildren
/// included (supervise.h).
///
/// Belongs to one thread, which must live as long as the launcher: the kernel ties the parent-death
/// signal to the thread that started a child. The calling process becomes a sub-reaper.
class ProcessLauncher {
 public:
  struct Options {
    /// The program whose verb `supervise` is run.
    std::string program;
    /// Where `<node>.log` goes; must exist.
    std::string log_directory;
    uint64_t log_bytes_max = 16 << 20;
    /// A descriptor that stays open until everything is gone, even when the launcher is killed: a
    /// file lock on it then says truly whether anything of a run is left. -1 = none.
    int held_fd = -1;
    /// Supervising processes with a life of their own that fall to this process, because who
    /// started them died, are left alone as long as the launcher lives.
    bool spare_supervisors = false;
  };
  explicit ProcessLauncher(Options options);
  ProcessLauncher(const ProcessLauncher&) = delete;
  ProcessLauncher& operator=(const ProcessLauncher&) = delete;
  /// Kills what still runs and waits until it is gone, and all that descends from this process.
  ~ProcessLauncher();

  /// Starts a node. Its start, and every failure that comes later (a command that cannot be
  /// executed ends with exit 127 or 126), arrives as a report. Requires: no node of that name runs.
  absl::Status Start(const NodeCommand& command);
  /// SIGTERM now, SIGKILL after `timeout`. Nothing happens when the node does not run.
  void Stop(const std::string& node, std::chrono::milliseconds timeout);
  /// SIGKILL now.
  void Kill(const std::string& node);

  /// Waits until a node has something to report, one of `wake_fds` is readable, or `timeout`
  /// passed; returns the reports, oldest first. After an exit's report everything the node had
  /// started is gone.
  std::vector<ProcessReport> Wait(std::chrono::milliseconds timeout,
                                  const std::vector<int>& wake_fds);

  /// Reaps, and kills, what fell to this process: whatever a killed supervising process left
  /// behind. To be called now and then; costs little.
  void Sweep();

  bool running(const std::string& node) const { return nodes_.contains(node); }
  size_t running_count() const { return nodes_.size(); }
  std::string LogPath(const std::string& node) const;

 private:
  struct Running {
    pid_t supervisor = -1;
    int control_fd = -1;
    pid_t pid = 0;
  };
  void Send(const std::string& node, uint32_t kind, uint32_t timeout_ms);
  /// Reads one message; appends to `reports`. False when the node is over.
  bool Read(const std::string& name, Running* node, std::vector<ProcessReport>* reports);
  /// Waits for the supervisor of a node that is over.
  void Bury(const Running& node);
  /// All that runs, but for one.
  Spared Others(pid_t supervisor) const;

  Options options_;
  std::map<std::string, Running> nodes_;
};

}  // namespace muster
