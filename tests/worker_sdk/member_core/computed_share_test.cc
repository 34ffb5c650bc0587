#include "worker_sdk/member_core/computed_share.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

constexpr ComputedShare::Key kFirst{LineageNumber(1), StepNumber(1), {}};

std::vector<MinibatchSpan> Spans(std::initializer_list<std::pair<uint32_t, uint32_t>> spans) {
  std::vector<MinibatchSpan> result;
  for (const auto& [first, count] : spans) result.push_back({MinibatchIndex(first), count});
  return result;
}
void Compute(ComputedShare* run, uint32_t minibatch) {
  ASSERT_TRUE(run->Start(run->number(), MinibatchIndex(minibatch)));
  run->Computed(run->number(), MinibatchIndex(minibatch));
}

TEST(ComputedShareTest, WithoutAStepThereIsNothingToCompute) {
  ComputedShare run;
  EXPECT_EQ(run.number(), 0u);
  EXPECT_FALSE(run.complete());
  EXPECT_FALSE(run.Start(0, MinibatchIndex(0)));
}

TEST(ComputedShareTest, IsCompleteWithTheWholeShareAndReportedWithItsMetrics) {
  ComputedShare run;
  run.Assign(kFirst, Spans({{0, 2}, {4, 1}}));
  EXPECT_FALSE(run.Start(run.number(), MinibatchIndex(2)));
  Compute(&run, 0);
  Compute(&run, 4);
  EXPECT_EQ(run.Missing(), Spans({{1, 1}}));
  run.Report(run.number(), {.records = 2}, {});
  Compute(&run, 1);
  EXPECT_TRUE(run.complete());
  EXPECT_FALSE(run.reported());
  run.Report(run.number(), {.records = 3}, {});
  EXPECT_TRUE(run.reported());
  EXPECT_EQ(run.metrics().records, 3u);
  EXPECT_FALSE(run.Start(run.number(), MinibatchIndex(0)));
}

TEST(ComputedShareTest, ALargerShareKeepsWhatIsComputed) {
  ComputedShare run;
  run.Assign(kFirst, Spans({{0, 2}}));
  StepRunNumber number = run.number();
  Compute(&run, 0);
  Compute(&run, 1);
  run.Assign(kFirst, Spans({{0, 2}, {3, 1}}));
  EXPECT_EQ(run.number(), number);
  EXPECT_EQ(run.Missing(), Spans({{3, 1}}));
}

TEST(ComputedShareTest, AShareWithoutAComputedMinibatchBeginsAnew) {
  ComputedShare run;
  run.Assign(kFirst, Spans({{0, 2}}));
  StepRunNumber number = run.number();
  Compute(&run, 0);
  run.Assign(kFirst, Spans({{1, 2}}));
  EXPECT_NE(run.number(), number);
  EXPECT_EQ(run.Missing(), Spans({{1, 2}}));
  run.Report(number, {.records = 1}, {});
  EXPECT_EQ(run.metrics().records, 0u);
}

/// Some of its gradients are added already.
TEST(ComputedShareTest, AShareWithoutTheMinibatchInWorkBeginsAnew) {
  ComputedShare run;
  run.Assign(kFirst, Spans({{0, 2}}));
  StepRunNumber number = run.number();
  ASSERT_TRUE(run.Start(number, MinibatchIndex(0)));
  run.Assign(kFirst, Spans({{1, 1}}));
  EXPECT_NE(run.number(), number);
  run.Computed(number, MinibatchIndex(0));
  EXPECT_EQ(run.Missing(), Spans({{1, 1}}));
}

TEST(ComputedShareTest, AnotherStepLineageOrShardBeginsAnew) {
  ComputedShare::Key step = kFirst, lineage = kFirst, shard = kFirst;
  step.step = StepNumber(2);
  lineage.lineage = LineageNumber(2);
  shard.shard.index = ShardIndex(1);
  for (const ComputedShare::Key& other : {step, lineage, shard}) {
    ComputedShare run;
    run.Assign(kFirst, Spans({{0, 1}}));
    Compute(&run, 0);
    run.Assign(other, Spans({{0, 1}}));
    EXPECT_EQ(run.Missing(), Spans({{0, 1}}));
  }
}

TEST(ComputedShareTest, AnEmptyShareIsComplete) {
  ComputedShare run;
  run.Assign(kFirst, {});
  EXPECT_TRUE(run.complete());
  EXPECT_TRUE(run.reported());
  run.Drop();
  EXPECT_EQ(run.number(), 0u);
}

}  // namespace
}  // namespace muster::sdk
