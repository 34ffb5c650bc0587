#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "scaler/nodes/node_keeper.h"
#include "tests/support/seeds.h"

namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kMega = uint64_t{1} << 20;

/// A machine, a master and the shell around a keeper, by chance: orders of every kind, nodes that
/// die, a master that is away, a scaler that is killed between any two effects and taken over.
class KeeperSim {
 public:
  explicit KeeperSim(uint64_t seed) : random_(seed) {
    options_.restarts.crash_loop_exits = 1'000'000;
    options_.worker_limits = Size(1);
    saved_ = NewPlan("r", 2, 3, {.server = Size(2), .worker = Size(1)});
    TakeOver();
  }

  /// Chance for a while; then nothing happens any more but what the keeper does.
  void Run() {
    for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
      Disturb();
      Pass();
    }
    calm_ = true;
    away_ = false;
    for (int i = 0; i < 500; ++i) Pass();
    CheckAtRest();
    phase_ = JobState::kSucceeded;
    for (int i = 0; i < 200 && !keeper_->outcome().has_value(); ++i) Pass();
    EXPECT_TRUE(keeper_->outcome().has_value());
    for (const auto& [name, process] : processes_) EXPECT_FALSE(process.alive) << name;
  }

 private:
  /// A process, or an exit that was not released.
  struct Process {
    uint32_t start = 0;
    uint64_t pid = 0;
    bool alive = true;
    ExitStatus exit;
    bool ended_well = false;
    Resources limits;
    bool drained = false;
    int ends_in = -1;  // passes; -1: it was told nothing
  };

  bool Chance(int percent) { return std::uniform_int_distribution(1, 100)(random_) <= percent; }
  uint32_t Below(uint32_t end) {
    return std::uniform_int_distribution<uint32_t>(0, end - 1)(random_);
  }
  static Resources Size(uint64_t size) { return {.cpus = 1, .memory_bytes = size * 64 * kMega}; }
  static NodeRole RoleOf(const std::string& name) {
    return name.starts_with("ps-") ? NodeRole::kServer : NodeRole::kWorker;
  }
  /// For any existing node, and sometimes for a missing one.
  std::string SomeNode() {
    const uint32_t number = Below(9);
    return number < 2 ? fmt::format("ps-{}", number) : WorkerName(number - 2);
  }

  void Disturb() {
    if (Chance(4)) away_ = !away_;
    if (Chance(5)) return TakeOver();
    if (Chance(12)) {
      const auto found = processes_.find(SomeNode());
      if (found != processes_.end() && found->second.alive) {
        Die(found->first, {.signal = Chance(50) ? SIGKILL : SIGSEGV}, false);
      }
    }
    if (Chance(5)) {
      const auto found = processes_.find(SomeNode());
      const bool lives = found != processes_.end() && found->second.alive;
      // It ends by itself, as when its machine is taken away.
      if (lives && RoleOf(found->first) == NodeRole::kWorker) Die(found->first, {}, true);
    }
    if (Chance(15)) Step(SomeOrder());
  }

  KeeperEvent SomeOrder() {
    const std::string node = SomeNode();
    switch (Below(5)) {
      case 0:
        return ResizeNode::To(node, Size(1 + Below(8)));
      case 1:
        return ScaleWorkers{1 + Below(6)};
      case 2:
        return EndNode{node};
      default: {
        RestartNode order{.node = node, .why = "chance", .charged = Chance(20)};
        if (Chance(50)) {
          order.limits = Size(1 + Below(8));
          for_next_start_.insert(node);
        }
        if (Chance(50)) order.only_start = starts_[node];
        return order;
      }
    }
  }

  /// A tenth of a second of everybody's.
  void Pass() {
    now_ += milliseconds(100);
    for (auto& [name, process] : processes_) {
      if (process.alive && process.ends_in > 0 && --process.ends_in == 0) {
        // One that was asked to hand over ends by itself.
        Die(name, process.drained ? ExitStatus{} : ExitStatus{.signal = SIGTERM}, process.drained);
      }
    }
    if (!away_) {
      while (!untold_.empty()) {
        const std::string node = untold_.front();
        untold_.pop_front();
        Step(ExitHeard{node});
      }
      if (calm_ || Chance(50)) Answer();
    }
    Step(Tick{});
  }

  void Answer() {
    MasterView view{.state = phase_, .done_seq = ++done_seq_};
    for (const auto& [name, process] : processes_) {
      if (!process.alive) continue;
      view.nodes.push_back({name, NodeState::kRunning, StartNumber(process.start),
                            !process.drained                    ? DrainState::kNone
                            : RoleOf(name) == NodeRole::kServer ? DrainState::kDrained
                                                                : DrainState::kDraining});
    }
    Step(MasterAnswered{view, now_});
  }

  void Die(const std::string& name, ExitStatus exit, bool ended_well) {
    Process& process = processes_.at(name);
    process.alive = false;
    process.exit = exit;
    process.ended_well = ended_well;
    if (told_.contains(name)) Report(name);
  }

  /// Another scaler: it has the plan, and finds what there is.
  void TakeOver() {
    std::vector<FoundNode> found;
    for (const auto& [name, process] : processes_) found.push_back({name, process.start, true});
    const Adoption adoption = Adopt(saved_, found);
    for (const FoundNode& node : adoption.stale) {
      EXPECT_FALSE(processes_.at(node.node).alive) << node.node << " lives, and is thrown away";
      processes_.erase(node.node);
    }
    EXPECT_TRUE(adoption.died.empty()) << adoption.died.front();
    keeper_.emplace(options_, adoption.plan);
    untold_.clear();
    told_.clear();
    reported_.clear();
    news_.clear();
    std::vector<std::string> names;
    for (const auto& [name, process] : processes_) names.push_back(name);
    for (const std::string& name : names) {
      // Unless it was killed meanwhile, and the next one has heard of it.
      if (processes_.contains(name) && !told_.contains(name)) Heard(name);
    }
    Settle();
    CheckLimits();
  }

  void CheckLimits() {
    for (const KeptNode& node : keeper_->nodes()) {
      const auto process = processes_.find(node.name);
      if (process == processes_.end() || !process->second.alive) continue;
      // Those of a restart are for the next start, and a drain may come instead of it.
      if (for_next_start_.contains(node.name)) continue;
      EXPECT_EQ(process->second.limits, node.limits) << node.name;
    }
  }

  void Report(const std::string& name) {
    if (reported_.insert(name).second) news_.push_back(name);
  }

  void Heard(const std::string& name) {
    told_.insert(name);
    const uint64_t pid = processes_.at(name).pid;
    Carry(NodeStarted{name, pid});
    if (processes_.contains(name) && !processes_.at(name).alive) Report(name);
  }

  void Step(const KeeperEvent& event) {
    Carry(event);
    Settle();
  }

  /// The reports of the launcher.
  void Settle() {
    while (!news_.empty()) {
      const std::string name = news_.front();
      news_.pop_front();
      const Process& process = processes_.at(name);
      std::optional<SlotRecord> slot;
      if (RoleOf(name) == NodeRole::kWorker) slot = SlotRecord{.ended = process.ended_well};
      Carry(NodeExited{.node = name, .pid = process.pid, .exit = process.exit, .slot = slot});
    }
  }

  void Carry(const KeeperEvent& event) {
    const std::vector<KeeperEffect> effects = keeper_->Step(event, now_);
    saved_ = keeper_->plan();
    // Killed in the middle: what is left of the effects is lost.
    size_t carried = effects.size();
    if (!calm_ && !effects.empty() && Chance(3))
      carried = Below(static_cast<uint32_t>(effects.size()));
    std::vector<std::string> started;
    for (size_t i = 0; i < carried; ++i) {
      std::visit([&](const auto& effect) { Do(effect, &started); }, effects[i]);
    }
    if (carried < effects.size()) return TakeOver();
    for (const std::string& name : started) {
      if (processes_.contains(name) && !told_.contains(name)) Heard(name);
    }
  }

  void Do(const StartNode& effect, std::vector<std::string>* started) {
    EXPECT_FALSE(processes_.contains(effect.node)) << effect.node << " is there already";
    EXPECT_GT(effect.start, starts_[effect.node]) << "of " << effect.node;
    EXPECT_EQ(effect.limits, saved_.nodes.at(effect.node).limits) << effect.node;
    starts_[effect.node] = effect.start;
    for_next_start_.erase(effect.node);
    processes_[effect.node] = {.start = effect.start, .pid = ++pid_, .limits = effect.limits};
    told_.erase(effect.node);
    reported_.erase(effect.node);
    started->push_back(effect.node);
  }
  void Do(const StopNode& effect, std::vector<std::string>*) {
    Process& process = processes_.at(effect.node);
    if (process.alive && process.ends_in < 0) process.ends_in = 1 + static_cast<int>(Below(20));
  }
  void Do(const KillNode& effect, std::vector<std::string>*) {
    if (processes_.at(effect.node).alive) Die(effect.node, {.signal = SIGKILL}, false);
  }
  void Do(const DumpNode&, std::vector<std::string>*) {}
  void Do(const SetLimits& effect, std::vector<std::string>*) {
    Process& process = processes_.at(effect.node);
    // Less than it uses; one that is repeated by a successor is not refused.
    const bool less = effect.limits.memory_bytes < process.limits.memory_bytes;
    if (less && Chance(50)) {
      keeper_->Step(LimitRefused{effect.node, effect.limits}, now_);
      saved_ = keeper_->plan();
      return;
    }
    process.limits = effect.limits;
  }
  void Do(const AskDrainNode& effect, std::vector<std::string>*) {
    Process& process = processes_.at(effect.node);
    if (away_ || !process.alive || process.drained) return;
    process.drained = true;
    // Some do not leave by themselves.
    if (RoleOf(effect.node) == NodeRole::kWorker && Chance(80)) process.ends_in = 10;
  }
  void Do(const AskDrainJob&, std::vector<std::string>*) { ADD_FAILURE() << "somebody is there"; }
  void Do(const ReleaseNode& effect, std::vector<std::string>*) {
    EXPECT_FALSE(processes_.at(effect.node).alive) << effect.node;
    processes_.erase(effect.node);
  }
  void Do(const TellMaster& effect, std::vector<std::string>*) {
    if (effect.exited) untold_.push_back(effect.node);
  }
  void Do(const AskCancel&, std::vector<std::string>*) { ADD_FAILURE() << "nothing has failed"; }
  void Do(const RestartDelayed&, std::vector<std::string>*) {}
  void Do(const WorkerSentAway& effect, std::vector<std::string>*) {
    ADD_FAILURE() << effect.node << ": the master itself was not asked";
  }
  void Do(const Note&, std::vector<std::string>*) {}

  void CheckAtRest() {
    uint32_t workers = 0;
    for (const KeptNode& node : keeper_->nodes()) {
      if (node.state == KeptNode::State::kFinished) {
        EXPECT_FALSE(processes_.contains(node.name)) << node.name;
        continue;
      }
      EXPECT_EQ(node.state, KeptNode::State::kRunning) << node.name;
      ASSERT_TRUE(processes_.contains(node.name)) << node.name;
      EXPECT_EQ(processes_.at(node.name).limits, node.limits) << node.name;
      EXPECT_EQ(processes_.at(node.name).pid, node.pid) << node.name;
      if (node.role == NodeRole::kWorker) ++workers;
    }
    EXPECT_EQ(workers, keeper_->plan().workers);
  }

  std::mt19937_64 random_;
  KeeperOptions options_;
  std::optional<NodeKeeper> keeper_;
  Plan saved_;
  TimePoint now_{seconds(1'000)};
  JobState phase_ = JobState::kRunning;
  bool away_ = false;
  bool calm_ = false;
  uint64_t done_seq_ = 0;
  uint64_t pid_ = 0;
  std::map<std::string, Process> processes_;
  std::map<std::string, uint32_t> starts_;
  std::set<std::string> for_next_start_;  // of whom a restart had limits with it
  std::set<std::string> told_;            // of whose start the keeper has heard
  std::set<std::string> reported_;        // of whose exit it has heard, or will
  std::deque<std::string> news_;          // exits that it has not heard of
  std::deque<std::string> untold_;        // exits that the master has not heard of
};

TEST(KeeperSimTest, WhateverHappensEveryNodeIsStartedOnceAndComesToRest) {
  for (uint64_t seed = 1; seed <= testing::Seeds(40) && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    KeeperSim(seed).Run();
  }
}

}  // namespace
}  // namespace muster::scaler
