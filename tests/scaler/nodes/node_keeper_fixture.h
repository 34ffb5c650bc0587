#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scaler/nodes/node_keeper.h"

namespace muster::scaler {

inline constexpr ExitStatus kKilled{.signal = SIGKILL};
inline constexpr ExitStatus kCrashed{.signal = SIGSEGV};
inline constexpr ExitStatus kClean{};
inline const SlotRecord kEnded{.incarnation = 1, .computing = {}, .ended = true};

/// Plays the shell: starts nodes at once, tells the master at once unless it is `deaf_`, and keeps
/// what was asked for.
class NodeKeeperFixture : public ::testing::Test {
 protected:
  NodeKeeperFixture() {
    options_.restarts = {.crash_loop_exits = 3,
                         .backoff_initial = std::chrono::milliseconds(500),
                         .backoff_max = std::chrono::seconds(30)};
    view_.state = JobState::kRunning;
  }

  void Begin() { Begin(NewPlan("r", 1, 2)); }
  void Begin(const Plan& plan) { keeper_.emplace(options_, plan); }

  void Step(const KeeperEvent& event) {
    std::vector<std::string> started, heard;
    for (const KeeperEffect& effect : keeper_->Step(event, now_)) {
      if (const auto* start = std::get_if<StartNode>(&effect)) {
        did_.push_back("start " + start->node);
        starts_[start->node] = start->start;
        limits_[start->node] = start->limits;
        started.push_back(start->node);
      } else if (const auto* stop = std::get_if<StopNode>(&effect)) {
        did_.push_back("stop " + stop->node);
        stop_timeouts_[stop->node] = stop->timeout;
      } else if (const auto* kill = std::get_if<KillNode>(&effect)) {
        did_.push_back("kill " + kill->node);
      } else if (const auto* dump = std::get_if<DumpNode>(&effect)) {
        did_.push_back("dump " + dump->node);
      } else if (const auto* release = std::get_if<ReleaseNode>(&effect)) {
        released_.push_back(release->node);
      } else if (const auto* limits = std::get_if<SetLimits>(&effect)) {
        did_.push_back("limit " + limits->node + " to " + ToString(limits->limits));
      } else if (const auto* drain = std::get_if<AskDrainNode>(&effect)) {
        did_.push_back("drain " + drain->node);
      } else if (std::holds_alternative<AskDrainJob>(effect)) {
        did_.emplace_back("drain job");
      } else if (const auto* tell = std::get_if<TellMaster>(&effect)) {
        told_.push_back(*tell);
        if (tell->exited && !deaf_) heard.push_back(tell->node);
      } else if (const auto* cancel = std::get_if<AskCancel>(&effect)) {
        did_.push_back("cancel");
        cancel_reason_ = cancel->reason;
      } else if (const auto* delayed = std::get_if<RestartDelayed>(&effect)) {
        did_.push_back("delay " + delayed->node);
        delay_reason_ = delayed->why;
      } else if (const auto* away = std::get_if<WorkerSentAway>(&effect)) {
        did_.push_back("sent away " + away->node);
      }
    }
    for (const std::string& node : started) {
      if (short_) {
        Step(NodeExited{.node = node,
                        .exit = {.signal = 0, .code = 126},
                        .last_words = "cannot create a pipe: Too many open files\n",
                        .not_started = true});
        continue;
      }
      if (const auto held = held_.find(node); held != held_.end()) {
        Step(NodeHeld{node, held->second, "0/3 nodes are available"});
        continue;
      }
      pids_[node] = ++last_pid_;
      Step(NodeStarted{node, pids_[node]});
    }
    for (const std::string& node : heard) Step(ExitHeard{node});
  }

  void After(std::chrono::milliseconds time) {
    constexpr std::chrono::milliseconds kTick{1'000};
    for (; time > kTick; time -= kTick) StandStill(kTick);
    StandStill(time);
  }
  /// One tick after `gap`: more than two seconds, and the keeper takes it for its own pause.
  void StandStill(std::chrono::milliseconds gap) {
    now_ += gap;
    Step(Tick{});
  }

  /// The master answers; every node that runs is "running" unless `lost_` names it.
  void Answer() {
    view_.nodes.clear();
    for (const auto& [name, pid] : pids_) {
      if (pid == 0 || std::count(unseen_.begin(), unseen_.end(), name) > 0) continue;
      const bool lost = std::count(lost_.begin(), lost_.end(), name) > 0;
      view_.nodes.push_back({.name = name,
                             .state = lost ? NodeState::kLost : NodeState::kRunning,
                             .start = StartNumber(Kept(name).starts),
                             .drain = drains_.contains(name) ? drains_.at(name) : DrainState::kNone,
                             .minibatches = minibatches_[name]});
    }
    Step(MasterAnswered{view_, now_});
  }

  /// Time passes in which the master answers every second.
  void Pass(std::chrono::milliseconds time) {
    for (; time > std::chrono::seconds(1); time -= std::chrono::seconds(1))
      Pass(std::chrono::seconds(1));
    now_ += time;
    Answer();
  }

  void Progress() {
    ++view_.done_seq;
    Answer();
  }

  void Exit(const std::string& node, ExitStatus exit, std::optional<SlotRecord> slot = {}) {
    now_ += std::chrono::nanoseconds(1);  // after the last answer was asked for
    const uint64_t pid = std::exchange(pids_[node], 0);
    Step(NodeExited{node, pid, exit, slot, "last words\n"});
  }

  KeptNode Kept(const std::string& node) {
    for (const KeptNode& kept : keeper_->nodes()) {
      if (kept.name == node) return kept;
    }
    return {};
  }
  std::vector<std::string> Did() { return std::exchange(did_, {}); }
  NodePlan PlanOf(const std::string& node) { return keeper_->plan().nodes.at(node); }

  void RunToTraining() {
    Begin();
    Step(Tick{});
    Answer();
    Answer();
    Did();
    told_.clear();
  }

  KeeperOptions options_;
  std::optional<NodeKeeper> keeper_;
  TimePoint now_{std::chrono::seconds(100)};
  MasterView view_;
  bool deaf_ = false;
  bool short_ = false;                    // the machine, of what a start needs
  std::map<std::string, NodeWait> held_;  // nodes for which the cluster has no place
  std::map<std::string, uint64_t> pids_;
  std::map<std::string, uint32_t> starts_;
  std::map<std::string, std::chrono::milliseconds> stop_timeouts_;
  std::map<std::string, Resources> limits_;
  std::map<std::string, DrainState> drains_;  // as the master shows them
  uint64_t last_pid_ = 1000;
  std::vector<std::string> lost_;
  std::vector<std::string> unseen_;
  std::vector<std::string> did_;
  std::vector<std::string> released_;
  std::vector<TellMaster> told_;
  std::string cancel_reason_;
  std::string delay_reason_;
  std::map<std::string, uint64_t> minibatches_;  // as the master shows them
};

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr Resources kSmall{.cpus = 1, .memory_bytes = 512 * kMiB};
inline constexpr Resources kBig{.cpus = 1, .memory_bytes = 768 * kMiB};
inline constexpr ExitStatus kTerminated{.signal = SIGTERM};

/// A job of which every node has limits.
class KeeperOrdersFixture : public NodeKeeperFixture {
 protected:
  void RunToTraining(uint32_t workers = 2) {
    Begin(NewPlan("r", 1, workers, {.server = kBig, .worker = kSmall}));
    Answer();
    Answer();
    Did();
    told_.clear();
  }
  /// A scaler that takes over: it has the plan, and hears of what runs again.
  void TakeOver() {
    Begin(keeper_->plan());
    for (const auto& [name, pid] : pids_) {
      if (pid != 0) Step(NodeStarted{name, pid});
    }
    Answer();
  }
  RestartNode OrderRestart(const std::string& node) { return {.node = node, .why = "it is slow"}; }
};

}  // namespace muster::scaler
