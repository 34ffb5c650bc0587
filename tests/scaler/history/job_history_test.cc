#include "scaler/history/job_history.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "scaler/history/history_reader.h"
#include "tests/scaler/sensor/sensed_job.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class JobHistoryTest : public ::testing::Test {
 protected:
  void Train(const std::string& run, int seconds, bool well) {
    JobHistory history(folder_, {.run_id = run, .job = "j", .shape = {}});
    for (int i = 0; i < seconds; ++i) history.Append(job_.Second(), job_.wall);
    history.Finish(well);
  }

  testing::TempDir dir_;
  std::string folder_ = dir_.path() + "/history";
  SensedJob job_;
};

TEST_F(JobHistoryTest, TheNextRunLearns) {
  EXPECT_THAT(JobHistory::Earlier(folder_, "r1"), IsEmpty());
  Train("r1", 70, false);
  const auto learnt = JobHistory::Earlier(folder_, "r2");
  ASSERT_TRUE(learnt.contains(NodeRole::kServer));
  EXPECT_EQ(learnt.at(NodeRole::kServer).memory_peak_bytes, 100u);
  EXPECT_EQ(learnt.at(NodeRole::kWorker).runs, 1u);
  EXPECT_NEAR(learnt.at(NodeRole::kWorker).cpus_p95, 0.5, 0.051);
  // Not from itself: a scaler that is restarted would call its own run an earlier one.
  EXPECT_THAT(JobHistory::Earlier(folder_, "r1"), IsEmpty());
  EXPECT_TRUE(HistoryReader::Open(folder_).ok());
}

TEST_F(JobHistoryTest, AScalerThatWasRestartedGoesOn) {
  Train("r1", 40, false);
  EXPECT_THAT(JobHistory::Earlier(folder_, "r2"), IsEmpty());
  Train("r1", 40, false);
  EXPECT_THAT(JobHistory::Earlier(folder_, "r2"), SizeIs(2));
  EXPECT_THAT(*ReadSummaries(folder_), SizeIs(1));
}

TEST_F(JobHistoryTest, AKilledScalerLosesAMinuteAtMost) {
  JobHistory history(folder_, {.run_id = "r1", .job = "j", .shape = {}});
  for (int i = 0; i < 130; ++i) history.Append(job_.Second(), job_.wall);
  EXPECT_THAT(JobHistory::Earlier(folder_, "r2"), SizeIs(2));
}

TEST_F(JobHistoryTest, TwentyRunsAreKept) {
  for (int i = 0; i < 25; ++i) Train("r" + std::to_string(i), 2, true);
  const std::vector<RunSummary> runs = *ReadSummaries(folder_);
  ASSERT_THAT(runs, SizeIs(20));
  EXPECT_EQ(runs.front().run_id, "r5");
  EXPECT_EQ(runs.back().run_id, "r24");
  EXPECT_TRUE(runs.back().ended_well);
}

TEST_F(JobHistoryTest, DamageTeachesNothingAndIsMended) {
  Train("r1", 70, false);
  for (const char* text : {"{", "{\"version\":9}", "{\"version\":1,\"runs\":[{}]}", "[]"}) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/runs.json", text).ok());
    EXPECT_EQ(ReadSummaries(folder_).status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(ReadSummaries(folder_).status().message(), HasSubstr("runs.json"));
    EXPECT_THAT(JobHistory::Earlier(folder_, "r2"), IsEmpty());
  }
  Train("r2", 70, false);
  EXPECT_THAT(JobHistory::Earlier(folder_, "r3"), SizeIs(2));
}

}  // namespace
}  // namespace muster::scaler
