#include "scaler/history/run_summary.h"

#include <gmock/gmock.h>

#include "tests/scaler/sensor/sensed_job.h"

namespace muster::scaler {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kGiB = uint64_t{1} << 30;

RunSummary RunOf(double training_seconds, uint64_t peak, bool ended_well = false) {
  RunSummary run{.training_seconds = training_seconds, .ended_well = ended_well};
  run.roles[NodeRole::kServer] = {.memory_peak_bytes = peak, .cpu_seconds = {{10, 100}}};
  return run;
}

TEST(RunSummaryTest, SumsUpARun) {
  SensedJob job;
  RunSummarizer summarizer(RunSummary{});
  for (int i = 0; i < 100; ++i) {
    job.readings["worker-1"].usage.memory_bytes = 100;
    const JobView& view = job.Second();
    summarizer.Step(view, job.wall);
    summarizer.Step(view, job.wall);  // the same again adds nothing
  }
  const RunSummary& summary = summarizer.summary();
  EXPECT_NEAR(summary.training_seconds, 99, 1);
  EXPECT_EQ(summary.roles.at(NodeRole::kWorker).memory_peak_bytes, 100u);
  EXPECT_NEAR(summary.roles.at(NodeRole::kWorker).CpusP95(), 0.5, 0.051);
  uint64_t seconds = 0;
  for (const auto& [step, count] : summary.roles.at(NodeRole::kWorker).cpu_seconds) {
    seconds += count;
  }
  EXPECT_NEAR(static_cast<double>(seconds), 2 * 99, 2);
  EXPECT_GT(summary.ended_wall_us, summary.began_wall_us);
}

TEST(RunSummaryTest, WhatTheLimitCutOffCountsAsTheLimit) {
  SensedJob job;
  RunSummarizer summarizer(RunSummary{});
  job.sensor.OnEnd({.node = "ps-0",
                    .role = NodeRole::kServer,
                    .start = 1,
                    .cause = EndCause::kKernelOutOfMemory,
                    .memory_peak_bytes = 3 * kGiB,
                    .memory_limit_bytes = kGiB});
  job.sensor.OnEnd({.node = "worker-0",
                    .role = NodeRole::kWorker,
                    .start = 1,
                    .cause = EndCause::kProgram,
                    .memory_peak_bytes = kGiB,
                    .memory_limit_bytes = kGiB});
  summarizer.Step(job.Second(), job.wall);
  EXPECT_EQ(summarizer.summary().roles.at(NodeRole::kServer).memory_peak_bytes, kGiB);
  EXPECT_LT(summarizer.summary().roles.at(NodeRole::kWorker).memory_peak_bytes, kGiB);
}

TEST(RunSummaryTest, The95thPercentile) {
  RoleNeeds needs;
  EXPECT_EQ(needs.CpusP95(), 0);
  needs.cpu_seconds = {{10, 94}, {40, 2}, {100, 4}};
  EXPECT_NEAR(needs.CpusP95(), 2.0, 1e-9);
}

TEST(RunSummaryTest, ShortRunsAndOldOnesTeachNothing) {
  EXPECT_THAT(LearnFrom({}), IsEmpty());
  EXPECT_THAT(LearnFrom({RunOf(59, 100)}), IsEmpty());
  EXPECT_EQ(LearnFrom({RunOf(3, 100, true)}).at(NodeRole::kServer).memory_peak_bytes, 100u);
  const RoleHistory learnt = LearnFrom({RunOf(60, 900), RunOf(60, 1), RunOf(60, 2), RunOf(60, 5),
                                        RunOf(10, 800), RunOf(60, 4), RunOf(60, 3)})
                                 .at(NodeRole::kServer);
  EXPECT_EQ(learnt.memory_peak_bytes, 5u);
  EXPECT_EQ(learnt.runs, 5u);
  EXPECT_NEAR(learnt.cpus_p95, 0.5, 1e-9);
}

}  // namespace
}  // namespace muster::scaler
