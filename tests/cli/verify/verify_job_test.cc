#include "cli/verify/verify_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "cli/verify/verify_command.h"
#include "job/file/load_job.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

class VerifyJobTest : public ::testing::Test {
 protected:
  VerifyJobOptions Options() const {
    return {.directory = folder_.File("somewhere/new"),
            .seed = 9,
            .workers = 3,
            .servers = 2,
            .partitions = 16,
            .faults = 4,
            .trainer = "/opt/a \"worker\""};
  }
  const TempDir folder_;
};

TEST_F(VerifyJobTest, JobFileIsRight) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const VerifyJob job, VerifyJob::Create(Options()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob loaded, LoadJob(job.job_file(), ""));
  EXPECT_EQ(loaded.spec.seed, 9u);
  EXPECT_EQ(loaded.spec.partitions, 16u);
  EXPECT_EQ(loaded.spec.worker.replicas, 3u);
  EXPECT_EQ(loaded.spec.ps.replicas, 2u);
  EXPECT_EQ(loaded.spec.leases.duration, VerifyJob::kLease);
  EXPECT_EQ(loaded.spec.state_directory, job.state().path());
  EXPECT_EQ(loaded.spec.datasets.at(0).epochs, job.workload().epochs);
  EXPECT_THAT(loaded.spec.worker.command,
              ElementsAre("/opt/a \"worker\"", "--slow-us", "45000", "--slow-while",
                          job.folder() + "/slow", "--history", job.histories()));
}

TEST_F(VerifyJobTest, JobFileOfAGroupIsRight) {
  VerifyJobOptions options = Options();
  options.kind = JobKind::kGroup;
  MUSTER_ASSERT_OK_AND_ASSIGN(const VerifyJob job, VerifyJob::Create(options));
  MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob loaded, LoadJob(job.job_file(), ""));
  EXPECT_EQ(loaded.spec.seed, 9u);
  EXPECT_EQ(loaded.spec.worker.replicas, 3u);
  EXPECT_EQ(loaded.spec.group.global_batch,
            VerifyJob::kGroupMinibatchSize * VerifyJob::kMinibatchesPerStep);
  EXPECT_EQ(loaded.spec.datasets.at(0).minibatch_size, VerifyJob::kGroupMinibatchSize);
  EXPECT_EQ(loaded.spec.datasets.at(0).epochs, job.workload().epochs);
  EXPECT_THAT(loaded.spec.worker.command,
              ElementsAre("/opt/a \"worker\"", "--slow-us", "60000", "--slow-while",
                          job.folder() + "/slow", "--history", job.histories(), "--group-records",
                          std::to_string(job.workload().records), "--results", job.results()));
  EXPECT_TRUE(std::filesystem::is_directory(job.results()));
}

TEST_F(VerifyJobTest, TwinIsTheSameJobInItsFolder) {
  std::string folder;
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const VerifyJob job, VerifyJob::Create(Options()));
    MUSTER_ASSERT_OK_AND_ASSIGN(const VerifyJob twin, job.CreateTwin("twin"));
    folder = job.folder();
    EXPECT_EQ(twin.folder(), folder + "/twin");
    EXPECT_EQ(twin.workload().records, job.workload().records);
    MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob loaded, LoadJob(twin.job_file(), ""));
    EXPECT_EQ(loaded.spec.seed, 9u);
    EXPECT_EQ(loaded.spec.state_directory, twin.state().path());
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(VerifyJobTest, DataAreTheNumbersInOrder) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const VerifyJob job, VerifyJob::Create(Options()));
  uint64_t expected = 0;
  for (int i = 0; i < 4; ++i) {
    std::ifstream file(job.folder() + "/numbers-" + std::to_string(i) + ".txt");
    for (uint64_t id; file >> id; ++expected) ASSERT_EQ(id, expected);
  }
  EXPECT_EQ(expected, job.workload().records);
}

TEST_F(VerifyJobTest, LastsAsLongAsItsFaults) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const VerifyJob job, VerifyJob::Create(Options()));
  const Workload few = VerifyJob::WorkloadFor(4);
  EXPECT_EQ(job.workload().records, few.records);
  EXPECT_GT(VerifyJob::WorkloadFor(400).records, 40 * few.records);
  const Workload most =
      VerifyJob::WorkloadFor(VerifyOptions::kKillsMax + VerifyOptions::kPausesMax);
  EXPECT_LT(most.records * most.epochs, 1U << 24) << "or float32 no longer counts exactly";
  const Workload group = VerifyJob::WorkloadFor(100, JobKind::kGroup);
  EXPECT_GT(group.records * group.epochs,
            300 * VerifyJob::kGroupMinibatchSize * VerifyJob::kMinibatchesPerStep)
      << "more steps than faults";
}

TEST_F(VerifyJobTest, SlowUntilItHurries) {
  MUSTER_ASSERT_OK_AND_ASSIGN(VerifyJob job, VerifyJob::Create(Options()));
  const std::string slow = job.folder() + "/slow";
  EXPECT_EQ(ReadFile(slow, 100).value(), "");
  job.SlowDown(1);
  EXPECT_EQ(ReadFile(slow, 100).value(), "90000\n");
  job.SlowDown(30);
  EXPECT_EQ(ReadFile(slow, 100).value(), "1000000\n");
  job.SlowDown(0);
  EXPECT_EQ(ReadFile(slow, 100).value(), "45000\n");
  job.Hurry();
  EXPECT_FALSE(std::filesystem::exists(slow));
}

TEST_F(VerifyJobTest, FolderGoesUnlessItIsKept) {
  std::string gone;
  std::string kept;
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(VerifyJob job, VerifyJob::Create(Options()));
    const VerifyJob moved = std::move(job);
    gone = moved.folder();
    EXPECT_TRUE(std::filesystem::exists(gone));
    MUSTER_ASSERT_OK_AND_ASSIGN(VerifyJob other, VerifyJob::Create(Options()));
    other.Keep();
    kept = other.folder();
  }
  EXPECT_FALSE(std::filesystem::exists(gone));
  EXPECT_TRUE(std::filesystem::exists(kept));
}

TEST_F(VerifyJobTest, DirectoryThatCannotBe) {
  std::ofstream(folder_.File("file")) << "x";
  VerifyJobOptions options = Options();
  options.directory = folder_.File("file");
  const absl::StatusOr<VerifyJob> job = VerifyJob::Create(options);
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("--directory cannot be used"));
}

}  // namespace
}  // namespace muster::verify
