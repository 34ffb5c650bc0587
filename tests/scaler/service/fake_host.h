#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/node_host.h"

namespace muster::scaler::testing {

/// Nodes that exist in memory only. What is done with them is written down; what becomes of them is
/// the test's to say, but for this: a start succeeds, and who is told to end does.
class FakeHost : public NodeHost {
 public:
  FakeHost() = default;
  ~FakeHost() override { ::close(wake_fd_); }

  struct Life {
    uint32_t start = 0;
    uint64_t pid = 0;
    Resources limits;
    NodeUsage usage;
    bool over = false;
  };
  // The test's.
  std::string remark;
  std::string abandoned;  // why
  Resources capacity;
  std::vector<FoundNode> found;
  absl::Status start_error, limits_error;
  std::map<std::string, NodeHeld> held;  // nodes for which there is no place
  std::map<std::string, std::vector<std::string>> logs;
  /// Called once in a turn of the loop, which never waits.
  std::function<void()> on_turn = [] {};

  /// "start worker-0 2", "release worker-0", ...
  std::vector<std::string> did;
  std::map<std::string, Life> nodes;
  std::map<uint64_t, NodeUsage> own_usage;  // by pid

  void Exit(NodeExited exit) {
    Life& life = nodes.at(exit.node);
    if (std::exchange(life.over, true)) return;
    if (exit.pid == 0) exit.pid = life.pid;
    reports_.push_back(std::move(exit));
  }
  size_t Count(const std::string& what) const {
    return static_cast<size_t>(std::count(did.begin(), did.end(), what));
  }

  const std::string& limits_remark() const override { return remark; }
  std::string WhyAbandoned() const override { return abandoned; }
  Resources Capacity() const override { return capacity; }
  std::optional<std::chrono::microseconds> Idle() const override { return std::nullopt; }

  absl::StatusOr<std::vector<FoundNode>> Find() override { return found; }
  void Discard(const FoundNode& node) override { Note("discard", node.node); }
  NodeExited DeathOf(const std::string& node, uint32_t) const override {
    return {.node = node, .exit = {.signal = SIGKILL}, .slot = {}, .last_words = ""};
  }

  absl::Status Start(const StartNode& start) override {
    Note("start", fmt::format("{} {}", start.node, start.start));
    if (!start_error.ok()) return start_error;
    EXPECT_FALSE(Has(start.node)) << start.node;
    Life& life = nodes[start.node];
    life = {.start = start.start, .pid = ++pids_, .limits = start.limits, .usage = {}};
    if (const auto hold = held.find(start.node); hold != held.end()) {
      life.pid = 0;
      reports_.push_back(hold->second);
      return absl::OkStatus();
    }
    reports_.push_back(NodeStarted{start.node, life.pid});
    return absl::OkStatus();
  }
  void Stop(const std::string& node, std::chrono::milliseconds) override {
    Note("stop", node);
    if (Has(node)) Exit({.node = node, .exit = {.signal = SIGTERM}, .slot = {}, .last_words = ""});
  }
  void Kill(const std::string& node) override {
    Note("kill", node);
    if (Has(node)) Exit({.node = node, .exit = {.signal = SIGKILL}, .slot = {}, .last_words = ""});
  }
  absl::Status SetLimits(const std::string& node, const Resources& limits) override {
    Note("limit", node);
    if (!Has(node) || nodes.at(node).over) return absl::NotFoundError(node);
    if (limits_error.ok()) nodes.at(node).limits = limits;
    return limits_error;
  }
  absl::StatusOr<NodeUsage> Usage(const std::string& node) override {
    if (!Has(node) || nodes.at(node).over) return absl::NotFoundError(node);
    return nodes.at(node).usage;
  }
  absl::StatusOr<NodeUsage> UsageOfProcess(uint64_t pid) override {
    const auto own = own_usage.find(pid);
    if (own == own_usage.end()) return absl::NotFoundError("no process");
    return own->second;
  }
  absl::Status DumpStacks(const std::string& node) override {
    Note("dump", node);
    return Has(node) && !nodes.at(node).over ? absl::OkStatus() : absl::NotFoundError(node);
  }
  void Release(const std::string& node) override {
    Note("release", node);
    nodes.erase(node);
  }
  bool Has(const std::string& node) const override { return nodes.contains(node); }

  int wake_fd() const override { return wake_fd_; }
  std::vector<HostReport> TakeReports() override {
    on_turn();
    return std::exchange(reports_, {});
  }
  absl::StatusOr<LogPiece> ReadLog(const std::string& node,
                                   const LogQuestion& question) const override {
    const auto log = logs.find(node);
    if (log == logs.end()) return absl::NotFoundError(node);
    EXPECT_GE(question.lines, log->second.size());
    LogPiece piece{.lines = log->second};
    for (const std::string& line : piece.lines) piece.next_offset += line.size() + 1;
    return piece;
  }
  void EndRun() override { did.push_back("end run"); }

 private:
  void Note(const std::string& what, const std::string& of) { did.push_back(what + " " + of); }

  const int wake_fd_ = ::eventfd(1, EFD_CLOEXEC);  // always readable
  uint64_t pids_ = 1'000;
  std::vector<HostReport> reports_;
};

}  // namespace muster::scaler::testing
