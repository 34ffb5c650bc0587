#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "scaler/policy/policies.h"
#include "tests/scaler/model/fake_job.h"

/// Jobs in which nothing is wrong: no policy may want anything of them. And the same jobs with one
/// node that is slow: it must be found, and no other node.
namespace muster::scaler {
namespace {

/// A job of random size whose figures move as those of real ones do: neighbours take the machine
/// away from all and from one, servers write snapshots, memory is filled, collected and levels off,
/// evaluations and replays come and go.
class UndisturbedRun {
 public:
  explicit UndisturbedRun(uint64_t seed) : rng_(seed) {
    const auto servers = static_cast<uint32_t>(1 + rng_.Below(4));
    const auto workers = static_cast<uint32_t>(1 + rng_.Below(6));
    const double limit_mib = 200 + 800 * rng_.Uniform();
    const bool limited = rng_.Below(4) > 0;
    const Resources limits =
        limited ? Resources{.cpus = 1, .memory_bytes = static_cast<uint64_t>(limit_mib) * kMiB}
                : Resources{};
    job_.Add(NodeRole::kServer, servers, {}, limits).Add(NodeRole::kWorker, workers, {}, limits);
    minibatches_ = 2 + 200 * rng_.Uniform();
    snapshot_every_ = 3 + static_cast<int>(rng_.Below(5));
    evaluate_every_ = 60 + static_cast<int>(rng_.Below(100));
    for (const NodeView& node : job_.view.nodes) {
      nodes_.push_back({.name = node.name,
                        .speed = 0.85 + 0.3 * rng_.Uniform(),
                        .level = limit_mib * (0.3 + 0.55 * rng_.Uniform()),
                        .rise_s = 1 + 30 * rng_.Uniform(),
                        .tooth_s = static_cast<int>(2 + rng_.Below(8)),
                        .tooth = limit_mib * 0.1 * rng_.Uniform()});
    }
  }

  /// From now on this node takes so many times as long for everything.
  void SlowDown(const std::string& name, double times) {
    for (Character& node : nodes_) {
      if (node.name == name) node.speed *= times;
    }
  }
  /// The last node of a role.
  std::string Last(NodeRole role) const {
    std::string last;
    for (const NodeView& node : job_.view.nodes) {
      if (node.role == role) last = node.name;
    }
    return last;
  }

  /// One second, and the view after it.
  const JobView& Tick() {
    ++second_;
    machine_ = Drift(machine_, 0.15);
    const int phase = second_ % evaluate_every_;
    job_.view.activity = second_ < 3   ? Activity::kStarting
                         : phase < 10  ? Activity::kEvaluating
                         : phase == 50 ? Activity::kReplaying
                                       : Activity::kTraining;
    for (size_t i = 0; i < nodes_.size(); ++i) SetLoad(&nodes_[i], static_cast<int>(i));
    job_.Tick();
    return job_.view;
  }

 private:
  struct Character {
    std::string name;
    double speed = 1;
    double level = 0, rise_s = 1;  // of memory, MiB and seconds
    int tooth_s = 1;
    double tooth = 0;
    double drift = 1;
  };

  /// A factor about 1 that forgets within some seconds.
  double Drift(double factor, double width) {
    return 0.7 * factor + 0.3 * std::exp(width * 2 * (2 * rng_.Uniform() - 1));
  }

  void SetLoad(Character* node, int index) {
    node->drift = Drift(node->drift, 0.2);
    const double slow = machine_ * node->drift * node->speed;
    const bool evaluating = job_.view.activity == Activity::kEvaluating;
    const bool snapshot = (second_ + 2 * index) % snapshot_every_ == 0;
    const double wait = 0.1 + 0.5 * rng_.Uniform();
    const double filled = 1 - std::exp(-second_ / node->rise_s);
    Load& load = job_.loads[node->name];
    load.minibatches = minibatches_ / slow * (evaluating ? 2 : 1);
    load.computing_us = 1e6 * (1 - wait) / minibatches_ * slow / (evaluating ? 2 : 1);
    load.waiting_pulls = wait * 0.6;
    load.waiting_pushes = wait * 0.3;
    load.waiting_shards = wait * 0.1;
    load.requests = 2 * minibatches_ / machine_;
    load.service_us = 120 * slow * (snapshot ? 4 : 1) * (0.7 + 0.6 * rng_.Uniform());
    load.round_trip_us = 600 * slow * (snapshot ? 5 : 1) * (0.5 + rng_.Uniform());
    load.cpus = 0.3 + 0.6 * rng_.Uniform();
    load.throttled = rng_.Below(10) == 0 ? 0.1 * rng_.Uniform() : 0;
    load.memory_mib = node->level * filled * (0.99 + 0.02 * rng_.Uniform()) +
                      node->tooth * (second_ % node->tooth_s) / node->tooth_s +
                      (snapshot ? 0.03 * node->level : 0);
  }

  Rng rng_;
  FakeJob job_;
  std::vector<Character> nodes_;
  double machine_ = 1;
  double minibatches_ = 0;
  int snapshot_every_ = 1;
  int evaluate_every_ = 1;
  int second_ = 0;
};

TEST(UndisturbedTest, TenThousandWindowsAndNoProposal) {
  constexpr int kRuns = 50;
  constexpr int kSeconds = 200;
  for (int run = 0; run < kRuns; ++run) {
    UndisturbedRun job(1000 + run);
    const std::vector<std::unique_ptr<Policy>> policies = MakePolicies();
    for (int second = 0; second < kSeconds; ++second) {
      for (const Proposal& proposal : StepAll(policies, job.Tick())) {
        FAIL() << "run " << run << ", second " << second << ": " << proposal.policy << ": "
               << proposal.because;
      }
    }
  }
}

TEST(UndisturbedTest, OneSlowNodeIsFoundAndNobodyElse) {
  for (const NodeRole role : {NodeRole::kWorker, NodeRole::kServer}) {
    for (int run = 0; run < 15; ++run) {
      UndisturbedRun job(2000 + run);
      const std::vector<std::unique_ptr<Policy>> policies = MakePolicies();
      const std::string slow = job.Last(role);
      int found = 0;
      for (int second = 0; second < 250 && found == 0; ++second) {
        // A server of some runs is the only one, which must be much slower than it was.
        if (second == 100) job.SlowDown(slow, role == NodeRole::kServer ? 10 : 5);
        for (const Proposal& proposal : StepAll(policies, job.Tick())) {
          EXPECT_EQ(proposal.policy,
                    role == NodeRole::kServer ? "server-straggler" : "worker-straggler");
          EXPECT_EQ(proposal.target, slow) << proposal.because;
          EXPECT_GT(second, 100) << proposal.because;
          found = second;
        }
      }
      EXPECT_GT(found, 0) << "run " << run << ": " << slow;
    }
  }
}

TEST(UndisturbedTest, TheSameViewsGiveTheSameProposals) {
  const auto run = [] {
    FakeJob job;
    job.Add(NodeRole::kWorker, 3);
    const std::vector<std::unique_ptr<Policy>> policies = MakePolicies();
    std::string told;
    for (int second = 0; second < 120; ++second) {
      if (second == 50) job.loads["worker-1"].computing_us = 50'000;
      if (second == 80) job.End("worker-2", EndCause::kProgram);
      job.Tick();
      for (const Proposal& proposal : StepAll(policies, job.view)) {
        told += std::to_string(second) + proposal.because + "\n";
      }
      job.view.ends.clear();
    }
    return told;
  };
  const std::string first = run();
  EXPECT_NE(first, "");
  EXPECT_EQ(first, run());
}

TEST(UndisturbedTest, EveryPolicyIsMadeOnceAndHasItsOwnName) {
  std::vector<std::string> names;
  for (const std::unique_ptr<Policy>& policy : MakePolicies()) names.push_back(policy->name());
  EXPECT_EQ(names.size(), 10u);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace muster::scaler
