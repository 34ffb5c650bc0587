#include "scaler/policy/worker_count.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Records/s of a job by its workers.
using Curve = std::function<double(double workers)>;

double UpToThree(double n) {
  return 1 / (1e-4 / n + 1e-5 * n);
}  // best at 3.2
double Linear(double n) {
  return 10'000 * n;
}

class WorkerCountTest : public ::testing::Test {
 protected:
  void Workers(uint32_t count, uint32_t most) {
    job_.Add(NodeRole::kWorker, count);
    job_.view.workers_min = 1;
    job_.view.workers_max = most;
  }
  uint32_t count() const { return static_cast<uint32_t>(job_.view.nodes.size()); }
  void Resize(uint32_t to) {
    const uint32_t most = job_.view.workers_max;
    while (count() > to) job_.view.nodes.pop_back();
    while (count() < to) {
      NodeView node = job_.view.nodes.front();
      node.name = "worker-" + std::to_string(count());
      node.start = ++starts_;
      node.started_at = job_.view.now;
      node.samples.clear();
      job_.loads[node.name] = {};
      job_.view.nodes.push_back(node);
    }
    job_.view.workers_max = most;
  }
  /// The counts gone through within `seconds`; `noise` of the rate; `before` each of them.
  std::vector<uint32_t> Follow(int seconds, const Curve& curve, double noise = 0,
                               const std::function<void(int second)>& before = nullptr) {
    std::vector<uint32_t> counts;
    for (int second = 0; second < seconds; ++second) {
      if (before) before(second);
      for (auto& [name, load] : job_.loads) {
        load.minibatches =
            curve(count()) * (1 - noise + 2 * noise * rng_.Uniform()) / count() / load.records_each;
      }
      job_.Tick();
      for (const Proposal& proposal : job_.Step(&policy_)) {
        EXPECT_EQ(proposal.action, Action::kScale);
        EXPECT_EQ(proposal.target, "workers");
        EXPECT_EQ(std::get<uint32_t>(proposal.before), count());
        last_ = proposal;
        Resize(std::get<uint32_t>(proposal.after));
        counts.push_back(count());
      }
    }
    return counts;
  }
  FakeJob job_;
  WorkerCountPolicy policy_;
  Proposal last_;
  Rng rng_{9};
  uint32_t starts_ = 100;
};

TEST_F(WorkerCountTest, TriesOneMoreThenFollowsTheModelAndStays) {
  Workers(1, 10);
  const std::vector<uint32_t> counts = Follow(1000, UpToThree);
  ASSERT_FALSE(counts.empty());
  EXPECT_EQ(counts[0], 2u);
  EXPECT_GE(counts.back(), 2u);
  EXPECT_LE(counts.back(), 4u);
  EXPECT_LE(counts.size(), 4u);
  EXPECT_THAT(Follow(2400, UpToThree, 0.1), IsEmpty()) << "noise moves nothing";
}

TEST_F(WorkerCountTest, LinearGrowthGoesToTheMostInSteps) {
  Workers(2, 8);
  EXPECT_THAT(Follow(1000, Linear, 0.02), ElementsAre(3, 5, 7, 8));
  EXPECT_GT(Figure(last_, "predicted rate"), 75'000);
  EXPECT_THAT(last_.because,
              HasSubstr("another worker would add 100 % of what a worker achieves now"));
  EXPECT_NEAR(Figure(last_, "CPU of a worker"), 0.5, 1e-6);
  EXPECT_NEAR(Figure(last_, "CPU to spare"), 8 - 7 * 0.5, 1e-6);
}

TEST_F(WorkerCountTest, AWorkerThatBringsNothingGoes) {
  Workers(2, 8);
  const auto saturated = [](double n) { return n <= 2 ? 20'000.0 : 20'000.0 - 500 * (n - 2); };
  EXPECT_THAT(Follow(1000, saturated, 0.02), ElementsAre(3, 2));
  EXPECT_THAT(last_.because, HasSubstr("the last worker adds"));
}

TEST_F(WorkerCountTest, WithoutCoresToSpareNothingIsTried) {
  Workers(2, 8);
  job_.view.machine.cpus = 1.2;  // each uses 0.5
  EXPECT_THAT(Follow(600, Linear), IsEmpty());
}

TEST_F(WorkerCountTest, AsManyAreAddedAsTheMachinesCoresCarry) {
  Workers(2, 8);
  job_.view.machine.cpus = 1.36;  // each uses 0.5, and starts with 0.35 to spare
  EXPECT_THAT(Follow(600, Linear), ElementsAre(3));
}

TEST_F(WorkerCountTest, WhileOneOfThemIsNotThereNothingIsChanged) {
  Workers(3, 8);
  job_.Node("worker-2").state = NodeState::kLost;
  EXPECT_THAT(Follow(600, Linear), IsEmpty());
}

TEST_F(WorkerCountTest, NoMoreThanTwoGoAtOnceAndNoneBelowTheFewest) {
  Workers(2, 8);
  job_.view.idle_cpus = 0;
  const auto flat = [](double) { return 20'000.0; };
  for (uint32_t n = 2; n <= 6; ++n) {
    Resize(n);
    job_.view.workers_min = n;
    EXPECT_THAT(Follow(80, flat), IsEmpty()) << n;
  }
  job_.view.workers_min = 3;
  EXPECT_THAT(Follow(300, flat), ElementsAre(4, 3));
  EXPECT_THAT(last_.because,
              HasSubstr("the last worker adds 0 % of what a worker achieves on average"));
}

TEST_F(WorkerCountTest, AFixedCountIsLeftAlone) {
  Workers(2, 8);
  job_.view.workers_min = job_.view.workers_max = 2;
  EXPECT_THAT(Follow(600, Linear), IsEmpty());
}

TEST_F(WorkerCountTest, WhoOnlyWaitsForShardsIsRemoved) {
  Workers(4, 4);
  job_.loads["worker-2"].waiting_shards = 0.9;
  job_.loads["worker-3"].waiting_shards = 0.95;
  EXPECT_THAT(Follow(60, Linear), ElementsAre(2));
  EXPECT_THAT(last_.because, HasSubstr("2 of 4 workers do nothing but wait for shards"));
  EXPECT_EQ(Figure(last_, "workers that only wait"), 2);
}

TEST_F(WorkerCountTest, OfThoseWhoOnlyWaitTheFewestStay) {
  Workers(4, 4);
  job_.view.workers_min = 3;
  job_.view.workers_max = 5;
  job_.loads["worker-2"].waiting_shards = job_.loads["worker-3"].waiting_shards = 0.95;
  EXPECT_THAT(Follow(60, Linear), ElementsAre(3));
}

TEST_F(WorkerCountTest, WhereAllWaitNoneIsTooMany) {
  Workers(3, 3);
  for (auto& [name, load] : job_.loads) load.waiting_shards = 0.95;
  EXPECT_THAT(Follow(200, Linear), IsEmpty());
}

TEST_F(WorkerCountTest, WhereAllWaitForDataNoneIsAdded) {
  Workers(3, 8);
  for (auto& [name, load] : job_.loads) load.waiting_shards = 0.95;
  EXPECT_THAT(Follow(600, Linear), IsEmpty());
}

TEST_F(WorkerCountTest, WhereAllWaitForServersNoneIsAdded) {
  Workers(3, 8);
  for (auto& [name, load] : job_.loads) {
    load.computing_us = 100;
    load.waiting_pulls = 0.8;
    load.waiting_pushes = 0.15;
  }
  EXPECT_THAT(Follow(600, Linear), IsEmpty());
  job_.loads["worker-1"] = {};
  EXPECT_FALSE(Follow(600, Linear).empty()) << "one of them computes";
}

TEST_F(WorkerCountTest, CoresThatOthersUseAreNotToSpare) {
  Workers(2, 8);
  job_.view.idle_cpus = 0.2;  // of 8, of which the workers use one
  EXPECT_THAT(Follow(600, Linear), IsEmpty());
  job_.view.idle_cpus = 6;
  EXPECT_FALSE(Follow(600, Linear).empty());
}

TEST_F(WorkerCountTest, NotMoreAreAddedThanThereAreCoresFor) {
  Workers(2, 8);
  const auto others = [this](int) { job_.view.idle_cpus = 2 - 0.5 * count(); };
  EXPECT_THAT(Follow(1000, Linear, 0, others), ElementsAre(3, 4));
}

TEST_F(WorkerCountTest, WhatWasMeasuredLongAgoIsForgotten) {
  Workers(2, 8);
  const auto saturated = [](double n) { return n <= 2 ? 20'000.0 : 20'000.0 - 500 * (n - 2); };
  EXPECT_THAT(Follow(1000, saturated), ElementsAre(3, 2));
  // From now on more workers would help, and nothing that is seen with two says so.
  EXPECT_THAT(Follow(2000, Linear), IsEmpty());
  EXPECT_THAT(Follow(3600, Linear), ElementsAre(3, 5, 7, 8));
}

/// A job that learns from a topic.
class TopicWorkerCountTest : public WorkerCountTest {
 protected:
  /// Follow(), with a backlog that grows by so much a second.
  std::vector<uint32_t> Lag(int seconds, const Curve& curve, double growth) {
    return Follow(seconds, curve, 0, [this, growth](int) {
      backlog_ = std::max(backlog_ + growth, 0.0);
      job_.view.backlog_records = static_cast<uint64_t>(backlog_);
    });
  }
  /// Every worker waits as long as the data leave it to: all of them together are busy for so many.
  std::vector<uint32_t> KeepUp(int seconds, double busy) {
    return Follow(
        seconds, [](double) { return 10'000; }, 0,
        [this, busy](int) {
          job_.view.backlog_records = 500;
          for (auto& [name, load] : job_.loads) load.waiting_shards = 1 - busy / count();
        });
  }
  double backlog_ = 1e7;
};

TEST_F(TopicWorkerCountTest, WhatIsKnownOfATopicIsNotItsEnd) {
  Workers(2, 8);
  job_.view.records_left = 1'000;
  EXPECT_THAT(Lag(1000, Linear, 0), ElementsAre(3, 5, 7, 8));
}

TEST_F(TopicWorkerCountTest, WhoFallsBehindTakesWorkersThatBringLess) {
  const auto little = [](double n) { return 20'000 + 2'500 * (n - 2); };
  Workers(2, 5);
  EXPECT_THAT(Lag(1000, little, 0), ElementsAre(3)) << "another brings a fifth of one";
  EXPECT_THAT(Lag(1000, little, 5'000), ElementsAre(4, 5));
  EXPECT_NEAR(Figure(last_, "backlog grows"), 5'000, 1);
}

TEST_F(TopicWorkerCountTest, WhoKeepsUpHasNoMoreThanItNeeds) {
  Workers(2, 8);
  EXPECT_THAT(KeepUp(600, 1.3), IsEmpty()) << "two are 65 % busy: none more, and none less";
  EXPECT_THAT(KeepUp(600, 0.5), ElementsAre(1));
  EXPECT_THAT(last_.because, HasSubstr("2 workers wait for data 75 % of their time"));
  EXPECT_THAT(KeepUp(600, 0.7), IsEmpty());
}

TEST_F(TopicWorkerCountTest, TwoWindowsInARowSayThatItKeepsUp) {
  Workers(2, 8);
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(KeepUp(45, 0.5), IsEmpty()) << "one window, and then another life of a worker";
    job_.view.nodes[1].start = ++starts_;
  }
  EXPECT_THAT(KeepUp(60, 0.5), ElementsAre(1));
}

TEST_F(TopicWorkerCountTest, ARateThatTheTopicDecidedIsNoMeasurement) {
  Workers(2, 8);
  EXPECT_THAT(KeepUp(600, 1.3), IsEmpty());
  for (auto& [name, load] : job_.loads) load = {};
  EXPECT_THAT(Lag(1000, Linear, 5'000), ElementsAre(3, 5, 7, 8));
}

TEST_F(TopicWorkerCountTest, WhoHasNoneOfItsPartitionsGoes) {
  Workers(4, 8);
  job_.loads["worker-2"].waiting_shards = job_.loads["worker-3"].waiting_shards = 0.95;
  EXPECT_THAT(Lag(60, Linear, 0), ElementsAre(2));
  EXPECT_THAT(last_.because, HasSubstr("2 of 4 workers do nothing but wait for shards"));
}

TEST_F(WorkerCountTest, TowardsTheEndNothingIsChanged) {
  Workers(2, 8);
  job_.view.records_left = 1'000'000;  // 50 s of work
  EXPECT_THAT(Follow(300, Linear), IsEmpty());
}

TEST_F(WorkerCountTest, OnlySteadyTrainingIsMeasured) {
  Workers(2, 8);
  job_.view.activity = Activity::kEvaluating;
  EXPECT_THAT(Follow(300, Linear), IsEmpty());
  job_.view.activity = Activity::kTraining;
  // A worker that comes and goes every half minute leaves no steady window.
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Follow(30, Linear), IsEmpty());
    job_.view.nodes[1].start = ++starts_;
  }
  EXPECT_FALSE(Follow(80, Linear).empty());
}

TEST_F(WorkerCountTest, ATotalThatWentBackIsNoMeasurement) {
  Workers(2, 8);
  EXPECT_THAT(Follow(45, Linear), IsEmpty());
  // Another master, which knows of fewer records. The window of these seconds begins again.
  job_.view.records_trained = 0;
  EXPECT_THAT(Follow(15, Linear), IsEmpty());
  EXPECT_THAT(Follow(10, Linear), ElementsAre(3));
  EXPECT_NEAR(Figure(last_, "rate"), 20'000, 1'000);
}

TEST_F(WorkerCountTest, TrainingSettlesAgainAfterEveryEvaluation) {
  Workers(2, 8);
  const auto epochs = [this](int second) {
    job_.view.activity = second % 36 < 33 ? Activity::kTraining : Activity::kEvaluating;
  };
  EXPECT_THAT(Follow(600, Linear, 0, epochs), IsEmpty());
}

TEST_F(WorkerCountTest, AFitThatErrsIsNotFollowed) {
  Workers(4, 8);
  const auto wild = [](double n) { return static_cast<int>(n) % 2 == 0 ? 9'000.0 : 40'000.0; };
  EXPECT_THAT(Follow(1000, wild), ElementsAre(5));
}

TEST_F(WorkerCountTest, NoMoreWhileTheClusterHadNoRoomForMore) {
  Workers(2, 8);
  NoRoomPolicy no_room;
  // The third one waits for a place until it is given up.
  Resize(3);
  NodeView& held = job_.Node("worker-2");
  held.state = NodeState::kWaiting;
  held.wait = NodeWait::kUnschedulable;
  held.waits_since = job_.view.now;
  EXPECT_THAT(Follow(299, Linear, 0, [&](int) { no_room.Step(job_.view); }), IsEmpty());
  job_.Tick();
  const std::vector<Proposal> fewer = no_room.Step(job_.view);
  ASSERT_EQ(fewer.size(), 1u);
  EXPECT_THAT(job_.Step(&policy_), IsEmpty());
  job_.NoteTaken(fewer[0]);
  Resize(2);
  EXPECT_THAT(Follow(290, Linear), IsEmpty());
  NodeView& tried = job_.Node("worker-0");  // any change of the number ends that
  job_.view.taken.push_back({.policy = "", .target = tried.name, .action = Action::kScale});
  EXPECT_THAT(Follow(200, Linear), ::testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace muster::scaler
