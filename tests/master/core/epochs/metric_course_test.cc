#include "master/core/epochs/metric_course.h"

#include <gmock/gmock.h>

#include <limits>
#include <vector>

#include "tests/master/core/core_fixture.h"

namespace muster {
namespace {

constexpr DatasetId kJudged(0);
constexpr double kUndefined = std::numeric_limits<double>::infinity();

/// Epochs of two shards, each of which reports a loss.
class RunningCourseTest : public ::testing::Test {
 protected:
  void RunShard(uint32_t epoch, uint64_t index, double loss) {
    const ShardId shard{kJudged, EpochIndex(epoch), ShardIndex(index)};
    queue_.Take(shard);
    queue_.SetDone({DoneSeq(++seq_), shard, LeaseToken(MasterIncarnation(1), seq_)});
    totals_.AddDone(shard, 10);
    queue_.CommitUpTo(DoneSeq(seq_), 1);
    ShardMetrics metrics{.records = 10};
    metrics.means["loss"] = {loss, 1};
    totals_.Commit(shard, metrics, 10);
  }
  void RunEpoch(uint32_t epoch, double loss) {
    for (uint64_t index = 0; index < 2; ++index) RunShard(epoch, index, loss);
  }
  void RunEpochs(const std::vector<double>& losses) {
    for (const double loss : losses) RunEpoch(next_++, loss);
  }
  MetricCourse Read(RunningCourse* course, uint32_t ended, uint32_t first = 0) {
    return course->Read(totals_, queue_, ended, first);
  }
  MetricCourse ReadAll(double min_delta = 0, Better better = Better::kLower) {
    RunningCourse course({kJudged, "loss", better}, min_delta);
    return Read(&course, next_);
  }

  std::vector<DatasetPlan> plan_ = {testing::PlanFor("test", DatasetMode::kTrain, 100, 2)};
  ShardQueue queue_{{{.epochs = 100, .shards = 2}}};
  EpochTotals totals_{&plan_, &queue_, {.metric_names = 10}};
  RunningCourse course_{{kJudged, "loss", Better::kLower}, 0};
  uint64_t seq_ = 0;
  uint32_t next_ = 0;
};

TEST_F(RunningCourseTest, TheFirstOfTheBestEpochsIsTheBest) {
  EXPECT_EQ(ReadAll(), MetricCourse());
  RunEpochs({0.5, 0.75, 0.25, 0.75, kUndefined, 0.25});
  EXPECT_EQ(ReadAll(0, Better::kHigher), (MetricCourse{EpochIndex(1), 0.75, 4}));
  EXPECT_EQ(ReadAll(0, Better::kLower), (MetricCourse{EpochIndex(2), 0.25, 3}));
}

TEST_F(RunningCourseTest, ALittleBetterDoesNotCount) {
  RunEpochs({1.0, 1.5, 2.25, 2.5});
  EXPECT_EQ(ReadAll(1, Better::kHigher), (MetricCourse{EpochIndex(2), 2.25, 1}));
}

TEST_F(RunningCourseTest, EpochsWithoutAValueWereNotBetter) {
  EXPECT_EQ(Read(&course_, 3), (MetricCourse{std::nullopt, 0, 3}));
  RunEpoch(3, 0.5);
  RunEpoch(9, 0.75);
  EXPECT_EQ(Read(&course_, 12), (MetricCourse{EpochIndex(3), 0.5, 8}));
  RunningCourse other({kJudged, "auc", Better::kHigher}, 0);
  EXPECT_EQ(Read(&other, 12), (MetricCourse{std::nullopt, 0, 12}));
}

TEST_F(RunningCourseTest, TheEndOfAnEpochReadsOneValue) {
  Read(&course_, 0);
  for (uint32_t epoch = 0; epoch < 50; ++epoch) {
    RunEpochs({epoch % 7 == 3 ? 50.0 - epoch : 100.0});
    EXPECT_EQ(Read(&course_, epoch + 1), ReadAll()) << epoch;
  }
  EXPECT_EQ(course_.values_read(), 50u);
  EXPECT_EQ(Read(&course_, 50), ReadAll());
  EXPECT_EQ(course_.values_read(), 50u) << "no epoch has ended";
}

TEST_F(RunningCourseTest, OnlyEpochsThatHaveEnded) {
  RunEpochs({3, 2, 1});
  EXPECT_EQ(Read(&course_, 2), (MetricCourse{EpochIndex(1), 2, 0}));
  EXPECT_EQ(Read(&course_, 3), (MetricCourse{EpochIndex(2), 1, 0}));
}

TEST_F(RunningCourseTest, WhatIsTriedAgainChangesTheCourse) {
  RunEpoch(0, 5);
  RunShard(1, 0, 1);
  RunEpoch(2, 2);
  EXPECT_EQ(Read(&course_, 3), (MetricCourse{EpochIndex(1), 1, 1}));
  RunShard(1, 1, 9);  // it was FAILED
  EXPECT_EQ(Read(&course_, 3), (MetricCourse{EpochIndex(2), 2, 0}));
  const uint64_t read = course_.values_read();
  RunEpoch(3, 1);
  EXPECT_EQ(Read(&course_, 4), (MetricCourse{EpochIndex(3), 1, 0}));
  EXPECT_EQ(course_.values_read(), read + 1) << "nothing can change any more";
}

TEST_F(RunningCourseTest, WhatIsThinnedOutLaterStaysInTheCourse) {
  RunEpochs({5, 1, 4, 4, 4});
  EXPECT_EQ(Read(&course_, 5), (MetricCourse{EpochIndex(1), 1, 3}));
  totals_.ThinOut(2, {});
  ASSERT_EQ(totals_.Metrics(kJudged, EpochIndex(1)), nullptr);
  RunEpochs({2});
  EXPECT_EQ(Read(&course_, 6), (MetricCourse{EpochIndex(1), 1, 4}));
}

TEST_F(RunningCourseTest, EpochsBeforeTheFirstAreLeftOut) {
  RunEpochs({1, 3, 2});
  EXPECT_EQ(Read(&course_, 3, 1), (MetricCourse{EpochIndex(2), 2, 0}));
}

}  // namespace
}  // namespace muster
