#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "host/node_host.h"
#include "host/processes/cgroup_tree.h"
#include "host/processes/node_launcher.h"
#include "host/resources.h"

namespace muster {

/// The usage that a node's control group counts. If it does not count CPU, `tree_cpu` is called for
/// the CPU of the node's processes.
NodeUsage UsageOf(const CgroupUsage& group,
                  const std::function<std::chrono::microseconds()>& tree_cpu);

/// This machine. Nodes are processes that outlive the calling one (node_launcher.h), and control
/// groups enforce their limits. If there are no control groups, or if a node's group cannot be
/// created or entered (which is logged), the node's `supervise` checks its memory ten times a
/// second and kills it above the limit. A limit on CPU is then ignored.
class LocalHost final : public NodeHost {
 public:
  struct Options {
    /// The same as in NodeLauncher::Options.
    std::string program;
    std::string log_directory;
    uint64_t log_bytes_max = 16 << 20;
    int life_fd = -1;
    int held_fd = -1;
    /// The folder of the sockets. It is created if it is missing.
    std::string socket_directory;
    /// Names the run's control groups (CgroupTree). If "", none are used.
    std::string run_id;
    /// The command of each node.
    std::function<NodeCommand(const std::string& node, NodeRole role)> command_of;
  };
  static absl::StatusOr<std::unique_ptr<LocalHost>> Open(Options options);

  const std::string& limits_remark() const override { return limits_remark_; }
  Resources Capacity() const override;
  std::optional<std::chrono::microseconds> Idle() const override;

  absl::StatusOr<std::vector<FoundNode>> Find() override { return launcher_.Find(); }
  void Discard(const FoundNode& node) override { launcher_.Discard(node); }
  NodeExited DeathOf(const std::string& node, uint32_t start) const override;

  absl::Status Start(const StartNode& start) override;
  void Stop(const std::string& node, std::chrono::milliseconds timeout) override {
    launcher_.Stop(node, timeout);
  }
  void Kill(const std::string& node) override { launcher_.Kill(node); }
  absl::Status SetLimits(const std::string& node, const Resources& limits) override;
  absl::StatusOr<NodeUsage> Usage(const std::string& node) override;
  absl::StatusOr<NodeUsage> UsageOfProcess(uint64_t pid) override;
  absl::Status DumpStacks(const std::string& node) override { return launcher_.DumpStacks(node); }
  void Release(const std::string& node) override { launcher_.Release(node); }
  bool Has(const std::string& node) const override { return launcher_.Has(node); }

  int wake_fd() const override { return launcher_.wake_fd(); }
  std::vector<HostReport> TakeReports() override;
  absl::StatusOr<LogPiece> ReadLog(const std::string& node,
                                   const LogQuestion& question) const override;
  void EndRun() override;

 private:
  /// What this process knows of the present process of a node, in addition to the launcher.
  struct Known {
    std::optional<double> cpus;      // wanted; none: not known to this process
    uint64_t memory_peak_bytes = 0;  // the largest value that was read from /proc
  };

  LocalHost(Options options, NodeSockets sockets);
  /// None if the group cannot be created. The error is logged.
  std::optional<Cgroup> MakeGroup(const StartNode& start) const;
  /// None if there is none.
  std::optional<Cgroup> GroupOf(const std::string& node, uint32_t start) const;
  std::optional<Cgroup> GroupOf(const std::string& node, const NodeLauncher::Running& life) const;
  /// Adds the slot and the memory figures of the node's control group.
  void Complete(const SuperviseReport& state, NodeExited* exit) const;

  const Options options_;
  CgroupTree groups_;
  std::string limits_remark_;
  std::map<std::string, Known> known_;
  NodeLauncher launcher_;
};

}  // namespace muster
