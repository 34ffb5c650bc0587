// Random histories: lost answers, late events, scalers that die, pods that end in all ways.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/pods/pod_book.h"
#include "scaler/nodes/plan.h"
#include "tests/kubernetes/pods/model_cluster.h"
#include "tests/kubernetes/pods/scripted_book.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seeds.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;
using scaler::NodePlan;
using testing::ModelCluster;
using testing::TestRun;

constexpr uint32_t kWorkers = 3;
constexpr int kSteps = 400;
/// Time for all that is retried slowly, and for the longest grace.
constexpr int kCalmSteps = 400;

/// A scaler: a book, its watch, and calls on their way. What is in `plan` outlives it.
class Scaler {
 public:
  Scaler(ModelCluster* cluster, uint64_t seed)
      : cluster_(cluster),
        book_({.run = TestRun(), .seed = seed, .slow_retry = std::chrono::seconds(5)}) {}

  std::vector<FoundNode> Find(TimePoint now) {
    std::vector<Json> items;
    std::vector<PodFacts> pods;
    for (const auto& [name, pod] : cluster_->pods()) {
      const PodFacts facts = ReadPodFacts(pod);
      if (facts.run != TestRun().run) continue;
      items.push_back(pod);
      pods.push_back(facts);
    }
    cache_.Listed(std::move(items), cluster_->version());
    next_event_ = cluster_->events().size();
    return book_.Find(pods, now);
  }
  void ReadWatch(size_t events_max, TimePoint now) {
    for (; next_event_ < cluster_->events().size() && events_max > 0; --events_max) {
      const Json& event = cluster_->events()[next_event_++];
      if (ReadPodFacts(event["object"]).run != TestRun().run) continue;
      const auto changes = cache_.Received(event);
      ASSERT_TRUE(changes.ok());
      Feed(*changes, now);
    }
  }
  /// The watch broke: what there is now, and nothing of what was between.
  void ListAgain(TimePoint now) {
    std::vector<Json> items;
    for (const auto& [name, pod] : cluster_->pods()) {
      if (ReadPodFacts(pod).run == TestRun().run) items.push_back(pod);
    }
    next_event_ = cluster_->events().size();
    Feed(cache_.Listed(std::move(items), cluster_->version()), now);
  }
  void Applied(const Json& pod, TimePoint now) {
    if (ReadPodFacts(pod).run == TestRun().run) Feed(cache_.Applied(pod), now);
  }
  PodBook& book() { return book_; }

 private:
  void Feed(const WatchCache::Changes& changes, TimePoint now) {
    for (const ObjectChange& change : changes) {
      const PodFacts facts = ReadPodFacts(*change.object);
      if (change.kind == ObjectChange::Kind::kDeleted) {
        book_.Gone(facts, now);
      } else {
        book_.Seen(facts, now);
      }
    }
  }
  ModelCluster* const cluster_;
  PodBook book_;
  WatchCache cache_;
  size_t next_event_ = 0;
};

class History {
 public:
  explicit History(uint64_t seed) : random_(seed), seed_(seed) {
    plan_ = scaler::NewPlan(TestRun().run, 0, kWorkers);
    BeginScaler();
  }

  void Run() {
    for (int i = 0; i < kSteps && !::testing::Test::HasFailure(); ++i) Step();
    calm_ = true;
    cluster_.quota_used_up = cluster_.forbidden = false;
    for (int i = 0; i < kCalmSteps && !::testing::Test::HasFailure(); ++i) Step();
    CheckTarget();
  }

 private:
  bool Chance(uint64_t percent) { return random_.Below(100) < percent; }
  bool Trouble(uint64_t percent) { return !calm_ && Chance(percent); }

  void Step() {
    now_ += std::chrono::milliseconds(random_.Below(calm_ ? 2'000 : 700));
    if (Trouble(1)) BeginScaler();
    if (Trouble(3)) cluster_.quota_used_up = !cluster_.quota_used_up;
    if (Trouble(1)) cluster_.forbidden = !cluster_.forbidden;
    Machines();
    scaler_->book().OnTime(now_);
    for (PodCall& call : scaler_->book().TakeCalls())
      calls_.push_back({scaler_.get(), std::move(call)});
    CarryCalls();
    if (Trouble(3)) {
      scaler_->ListAgain(now_);
    } else {
      scaler_->ReadWatch(calm_ ? SIZE_MAX : random_.Below(4), now_);
    }
    Keep();
    CheckOnePod();
  }

  /// The plan is what a scaler's successor knows; calls on their way may still arrive.
  void BeginScaler() {
    auto next = std::make_unique<Scaler>(&cluster_, random_.Next());
    scaler::Adoption adoption = scaler::Adopt(plan_, next->Find(now_));
    plan_ = std::move(adoption.plan);
    for (const FoundNode& node : adoption.stale) next->book().Discard(node, now_);
    for (const std::string& node : adoption.died)
      OnExit(node, next->book().DeathOf(node, plan_.nodes.at(node).starts));
    dead_.push_back(std::exchange(scaler_, std::move(next)));
  }

  /// As the scaler's keeper does it, in short.
  void Keep() {
    PodBook& book = scaler_->book();
    for (const HostReport& report : book.TakeReports()) {
      if (const auto* started = std::get_if<NodeStarted>(&report)) {
        plan_.nodes.at(started->node).pid = started->pid;
      } else if (const auto* exited = std::get_if<NodeExited>(&report)) {
        OnExit(exited->node, *exited);
        book.Release(exited->node, now_);
      }
    }
    for (auto& [name, node] : plan_.nodes) {
      if (node.state == NodePlan::State::kIdle && !book.Has(name)) {
        node.state = NodePlan::State::kRunning;
        node.pid = 0;
        book.Start({.node = name, .start = ++node.starts}, now_);
      } else if (node.state == NodePlan::State::kRunning && Trouble(2)) {
        if (Chance(50)) {
          book.Kill(name, now_);
        } else {
          book.Stop(name, std::chrono::seconds(5), now_);
        }
      }
    }
  }

  void OnExit(const std::string& name, const NodeExited& exit) {
    NodePlan& node = plan_.nodes.at(name);
    EXPECT_EQ(exit.node, name);
    EXPECT_EQ(node.state, NodePlan::State::kRunning)
        << Where() << name << " has an exit without a start";
    EXPECT_TRUE(exits_.insert({name, node.starts}).second)
        << Where() << name << " start " << node.starts << " has a second exit";
    if (exit.disruption != Disruption::kNodeLost) {
      EXPECT_FALSE(Lives(PodName(TestRun(), name, node.starts)))
          << Where() << name << " start " << node.starts << " lives after its exit";
    }
    node.state = NodePlan::State::kIdle;
  }

  // Machines.

  /// Its process may do something.
  bool Lives(const std::string& pod) const {
    const auto found = cluster_.pods().find(pod);
    if (found == cluster_.pods().end()) return false;
    return ReadPodFacts(found->second).stage != PodFacts::Stage::kEnded &&
           !lost_.contains(UidOf(pod));
  }
  std::string UidOf(const std::string& pod) const {
    return TextAt(cluster_.pods().at(pod), {"metadata", "uid"});
  }

  void Machines() {
    std::vector<std::string> names;
    for (const auto& [name, pod] : cluster_.pods()) names.push_back(name);
    for (const std::string& name : names) {
      const PodFacts facts = ReadPodFacts(cluster_.pods().at(name));
      if (lost_.contains(facts.uid)) continue;
      if (facts.being_deleted) {
        if (Chance(calm_ ? 50 : 20)) EndDeleted(name, facts);
      } else if (facts.stage == PodFacts::Stage::kWaiting) {
        if (Chance(30)) cluster_.Run(name);
      } else if (facts.stage == PodFacts::Stage::kRunning && !calm_) {
        Happen(name, facts);
      }
    }
  }
  void EndDeleted(const std::string& name, const PodFacts& facts) {
    if (facts.stage == PodFacts::Stage::kRunning && Chance(70)) {
      cluster_.End(name, Chance(50) ? 0 : 143);
    } else {
      cluster_.Remove(name);
    }
  }
  void Happen(const std::string& name, const PodFacts& facts) {
    const uint64_t what = random_.Below(200);
    if (what < 2) cluster_.End(name, 3);
    if (what == 2) cluster_.End(name, 137, "OOMKilled");
    if (what == 3) cluster_.Remove(name);
    if (what == 4) cluster_.Evict(name);
    if (what == 5) cluster_.Disrupt(name, "PreemptionByScheduler");
    if (what == 6) {
      lost_.insert(facts.uid);
      cluster_.Lose(name);
    }
    if (what == 7) {
      // Its machine falls silent, and nobody has noticed yet.
      lost_.insert(facts.uid);
    }
    if (what == 8) cluster_.Disrupt(name, "DeletionByTaintManager");
  }

  // Calls.

  struct OnWay {
    Scaler* scaler;
    PodCall call;
  };

  void CarryCalls() {
    std::vector<OnWay> later;
    for (OnWay& one : std::exchange(calls_, {})) {
      if (Trouble(50)) {
        later.push_back(std::move(one));
      } else {
        CarryOne(one);
      }
    }
    calls_.insert(calls_.begin(), later.begin(), later.end());
  }
  void CarryOne(const OnWay& one) {
    PodAnswer answer{.id = one.call.id};
    const bool lost = Trouble(15);
    if (lost && Chance(50)) {
      answer.status = ConnectionError("it never arrived");
    } else if (Trouble(5)) {
      answer.status = ToStatus(ReadApiError(429, "slow down", "1"));
    } else {
      answer = Carry(one.call, &cluster_);
      if (lost) answer = {.id = one.call.id, .status = ConnectionError("the answer is lost")};
    }
    if (one.scaler != scaler_.get()) return;  // it is dead
    const auto pod = cluster_.pods().find(one.call.name);
    if (answer.status.ok() && pod != cluster_.pods().end()) scaler_->Applied(pod->second, now_);
    scaler_->book().Answered(answer, now_);
  }

  // What must hold.

  void CheckOnePod() {
    std::map<std::string, std::set<std::string>> living;
    for (const auto& [name, pod] : cluster_.pods()) {
      if (Lives(name)) living[ReadPodFacts(pod).node].insert(name);
    }
    for (const auto& [node, names] : living) {
      EXPECT_EQ(names.size(), 1u) << Where() << node << " has " << *names.begin() << " and "
                                  << *names.rbegin();
    }
  }
  void CheckTarget() {
    for (const auto& [name, node] : plan_.nodes) {
      EXPECT_TRUE(scaler_->book().IsRunning(name))
          << Where() << name << " does not run: " << Dump();
      for (uint32_t start = 1; start < node.starts; ++start) {
        EXPECT_TRUE(exits_.contains({name, start})) << Where() << name << " start " << start;
      }
    }
    // A living pod for each, and the last dead one for its log.
    EXPECT_LE(cluster_.pods().size(), 2 * kWorkers) << Where();
    EXPECT_EQ(scaler_->book().calls_in_flight(), 0u) << Where();
  }
  std::string Dump() const {
    std::string text;
    for (const auto& [name, node] : plan_.nodes) {
      text += fmt::format("\n  {}: state {}, {} starts, has {}", name, static_cast<int>(node.state),
                          node.starts, scaler_->book().Has(name));
    }
    for (const auto& [name, pod] : cluster_.pods()) {
      text += fmt::format("\n  {}: {}{}", name, Describe(ReadPodState(pod)),
                          Lives(name) ? "" : ", does not live");
    }
    return text;
  }
  std::string Where() const { return fmt::format("seed {}: ", seed_); }

  Rng random_;
  const uint64_t seed_;
  TimePoint now_{std::chrono::seconds(1000)};
  bool calm_ = false;
  ModelCluster cluster_;
  scaler::Plan plan_;
  std::unique_ptr<Scaler> scaler_;
  std::vector<std::unique_ptr<Scaler>> dead_;
  std::vector<OnWay> calls_;
  std::set<std::pair<std::string, uint32_t>> exits_;
  std::set<std::string> lost_;  // UIDs of pods whose machine is silent
};

TEST(PodBookRandomTest, OneLivingPodOneExitAndTheTarget) {
  // Under a sanitizer, the JSON of the model cluster makes a history fifty times slower.
  const uint64_t seeds = testing::Seeds(testing::kSanitized ? 8 : 100);
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) History(seed).Run();
}

}  // namespace
}  // namespace muster::kubernetes
