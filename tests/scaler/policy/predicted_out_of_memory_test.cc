#include "scaler/policy/predicted_out_of_memory.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/random.h"
#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PredictedOutOfMemoryTest : public ::testing::Test {
 protected:
  PredictedOutOfMemoryTest() { job_.Add(NodeRole::kServer, 2, {}, {.memory_bytes = 1024 * kMiB}); }

  /// The proposals while ps-0 uses memory(second) MiB.
  std::vector<Proposal> With(int seconds, const std::function<double(int)>& memory_mib) {
    return job_.Run(&policy_, seconds,
                    [&](int second) { job_.loads["ps-0"].memory_mib = memory_mib(second); });
  }

  /// The usage in MiB when the limit is first raised; 0: not within so many seconds.
  double RaisedAt(int seconds, const std::function<double(int)>& memory_mib) {
    job_.Start("ps-0");
    for (int second = 1; second <= seconds; ++second) {
      job_.loads["ps-0"].memory_mib = memory_mib(second);
      job_.Tick();
      if (!job_.Step(&policy_).empty()) return memory_mib(second);
    }
    return 0;
  }

  FakeJob job_;
  PredictedOutOfMemoryPolicy policy_;
  Rng rng_{11};
};

TEST_F(PredictedOutOfMemoryTest, SteadyGrowthIsRaisedInPlaceBeforeTheLimit) {
  double used = 0;
  std::vector<Proposal> proposals;
  for (int second = 1; second <= 120 && proposals.empty(); ++second) {
    used = 500 + 5 * second;
    job_.loads["ps-0"].memory_mib = used + 3 * rng_.Uniform();
    job_.Tick();
    proposals = job_.Step(&policy_);
  }
  ASSERT_THAT(proposals, Not(IsEmpty()));
  EXPECT_LT(used, 1024 * 0.85);
  const Proposal& proposal = proposals[0];
  EXPECT_EQ(proposal.action, Action::kResize);
  EXPECT_EQ(proposal.kind, Proposal::Kind::kIntervention);
  EXPECT_EQ(proposal.target, "ps-0");
  // Two horizons of growth need less than half as much again.
  EXPECT_EQ(std::get<Resources>(proposal.after).memory_bytes, 1536 * kMiB);
  EXPECT_NEAR(Figure(proposal, "memory growth"), 5.0 * kMiB, 0.1 * kMiB);
  EXPECT_NEAR(Figure(proposal, "time to the limit"), (1024 - used) / 5, 3);
  EXPECT_THAT(proposal.because, HasSubstr("would be killed in"));
  EXPECT_TRUE(std::isnan(Figure(proposal, "memory pressure"))) << "not known";

  // Once raised it is quiet, though growth continues, until the new limit is near.
  job_.CarryOut(proposal);
  EXPECT_THAT(With(60, [&](int second) { return used + 5 * second; }), IsEmpty());
}

TEST_F(PredictedOutOfMemoryTest, SteepGrowthGetsWhatItNeeds) {
  job_.loads["ps-0"].memory_pressure = 12;
  std::vector<Proposal> proposals = With(19, [](int second) { return 300 + 35 * second; });
  ASSERT_THAT(proposals, Not(IsEmpty()));
  EXPECT_GT(std::get<Resources>(proposals[0].after).memory_bytes, 4000 * kMiB);
  EXPECT_EQ(Figure(proposals[0], "memory pressure"), 12);
}

TEST_F(PredictedOutOfMemoryTest, QuietWhenNothingWillHitTheLimit) {
  // Flat and near the limit, with noise; slow growth; growth that ends; growth far below.
  EXPECT_THAT(With(300, [&](int) { return 960 + 20 * rng_.Uniform(); }), IsEmpty());
  job_.Start("ps-0");
  EXPECT_THAT(With(300, [](int second) { return 800 + 0.2 * second; }), IsEmpty());
  for (double fill_s : {1, 3, 10, 30}) {
    job_.Start("ps-0");
    EXPECT_THAT(With(300, [&](int s) { return 950 - 600 * std::exp(-s / fill_s); }), IsEmpty())
        << fill_s;
  }
  job_.Start("ps-0");
  EXPECT_THAT(With(60, [](int second) { return 100 + 10.0 * second; }), IsEmpty());
}

TEST_F(PredictedOutOfMemoryTest, QuietOnSawteethOfEveryPeriodAndOnSpikes) {
  for (int period : {2, 5, 9, 20, 45, 100, 150}) {
    const auto tooth = [&](int second) {
      return 820.0 + 150.0 * (second % period) / period + 5 * rng_.Uniform();
    };
    // The first tooth starts in its middle: from nothing known it is growth like any other.
    job_.Start("ps-0");
    EXPECT_THAT(With(600, [&](int second) { return second < 15 ? 965.0 : tooth(second); }),
                IsEmpty())
        << period;
  }
  job_.Start("ps-0");
  EXPECT_THAT(With(300, [](int second) { return second % 50 == 0 ? 1000.0 : 700.0; }), IsEmpty());
}

TEST_F(PredictedOutOfMemoryTest, QuietWhileStarting) {
  job_.Start("ps-0");
  EXPECT_THAT(With(60, [](int second) { return std::min(850.0, 200.0 * second); }), IsEmpty());
  job_.Start("ps-0");
  job_.Node("ps-0").state = NodeState::kStarting;
  EXPECT_THAT(With(30, [](int second) { return 500 + 17.0 * second; }), IsEmpty());
}

TEST_F(PredictedOutOfMemoryTest, ANodeWithoutLimitIsNotWatched) {
  job_.Node("ps-0").limits = {};
  EXPECT_THAT(With(100, [](int second) { return 500 + 100.0 * second; }), IsEmpty());
}

TEST_F(PredictedOutOfMemoryTest, NeedsConfirmationByNewReadings) {
  const auto growth = [](int second) { return 700 + 6.0 * second; };
  int first = 0;
  for (int second = 1; second <= 60 && first == 0; ++second) {
    job_.loads["ps-0"].memory_mib = growth(second);
    job_.Tick();
    // The same reading looked at again confirms nothing.
    for (int again = 0; again < 5; ++again) {
      if (!job_.Step(&policy_).empty() && first == 0) first = second;
    }
  }
  // Five seconds to settle, eight of readings, and the third step that sees it.
  EXPECT_EQ(first, 5 + 8 + 2);
}

TEST_F(PredictedOutOfMemoryTest, AtTheBoundItIsQuietAndBelowItTakesWhatThereIs) {
  job_.Node("ps-0").max.memory_bytes = 1200 * kMiB;
  std::vector<Proposal> proposals = With(30, [](int second) { return 700 + 10.0 * second; });
  ASSERT_THAT(proposals, Not(IsEmpty()));
  EXPECT_EQ(std::get<Resources>(proposals[0].after).memory_bytes, 1200 * kMiB);
  job_.CarryOut(proposals[0]);
  EXPECT_THAT(With(20, [](int second) { return 1000 + 10.0 * second; }), IsEmpty());
}

TEST_F(PredictedOutOfMemoryTest, GrowthIsMetWhenTheLimitIsNearInMemoryAndInTime) {
  // 75 % of the limit are 768 MiB; the newest reading is one step ahead of the median of three,
  // and two more confirm it.
  EXPECT_NEAR(RaisedAt(200, [](int second) { return 500 + 5.0 * second; }), 768 + 3 * 5, 5);
  // A MiB a second: a minute before.
  EXPECT_NEAR(RaisedAt(400, [](int second) { return 700 + 1.0 * second; }), 964 + 3, 2);
}

TEST_F(PredictedOutOfMemoryTest, GrowthThatBecomesSteeperOrSlowerIsMetAsSoon) {
  EXPECT_NEAR(RaisedAt(100, [](int second) { return 500 + 0.2 * second * second; }), 800, 50);
  EXPECT_NEAR(RaisedAt(100, [](int second) { return 500 + 4 * second + 0.03 * second * second; }),
              800, 50);
  // Levels off at 1080 MiB, above the limit.
  EXPECT_NEAR(RaisedAt(200, [](int second) { return 1080 - 580 * std::exp(-second / 40.0); }), 790,
              30);
}

TEST_F(PredictedOutOfMemoryTest, APeakWhileItStartedIsNoEarlierHigh) {
  EXPECT_NEAR(RaisedAt(200, [](int second) { return second <= 3 ? 950 : 400 + 4.0 * second; }),
              784 + 12, 8);
}

TEST_F(PredictedOutOfMemoryTest, ItGetsWhatTheLineNeedsForTwoMinutes) {
  std::vector<Proposal> proposals = With(19, [](int second) { return 300 + 35 * second; });
  ASSERT_THAT(proposals, Not(IsEmpty()));
  const double needed = Figure(proposals[0], "memory") + 120 * 35 * kMiB;
  EXPECT_NEAR(static_cast<double>(std::get<Resources>(proposals[0].after).memory_bytes), needed,
              2.0 * kMiB);
  EXPECT_EQ(proposals[0].evidence[2].window.count(), 12) << "readings since it settled";
}

TEST_F(PredictedOutOfMemoryTest, LittleMoreIsNotWorthAChange) {
  const auto growth = [](int second) { return 700 + 10.0 * second; };
  job_.Node("ps-0").max.memory_bytes = 1060 * kMiB;
  EXPECT_EQ(RaisedAt(30, growth), 0);
  job_.Node("ps-0").max.memory_bytes = 1080 * kMiB;
  EXPECT_GT(RaisedAt(30, growth), 0);
}

TEST_F(PredictedOutOfMemoryTest, ALostNodeIsWatchedAndALaterLifeIsConfirmedAnew) {
  const auto growth = [](int second) { return 700 + 6.0 * second; };
  job_.Node("ps-0").state = NodeState::kLost;
  EXPECT_THAT(With(14, growth), IsEmpty());
  job_.Start("ps-0");
  job_.Node("ps-0").state = NodeState::kLost;
  EXPECT_THAT(With(14, growth), IsEmpty());
  EXPECT_THAT(With(1, [&](int) { return growth(15); }), Not(IsEmpty()));
}

}  // namespace
}  // namespace muster::scaler
