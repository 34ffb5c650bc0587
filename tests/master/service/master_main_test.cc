#include "master/service/master_main.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/failpoint.h"
#include "base/file.h"
#include "master/journal/rocksdb_journal.h"
#include "master/service/snapshot_owner.h"
#include "master/sources/source_catalog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

JobSpec Job() {
  JobSpec job;
  job.name = "job";
  job.seed = 3;
  job.partitions = 4;
  job.ps.replicas = 2;
  DatasetSpec dataset;
  dataset.name = "train";
  dataset.minibatch_size = 4;
  dataset.minibatches_per_shard = 2;
  dataset.shuffle = Shuffle::kAll;
  dataset.epochs = 2;
  job.datasets = {dataset};
  return job;
}

TEST(CoreOptionsOf, TakesOverWhatTheCoreNeeds) {
  MasterOptions options{Job(), "127.0.0.1:0", "run-9", true, {}};
#if MUSTER_WITH_FAILPOINTS
  options.planted_bugs.no_reverify = true;
#endif
  options.job.training.rejected_records_max = 5;
  options.job.training.failed_shards_max = 6;
  options.job.snapshot_interval = std::chrono::seconds(3);
  const CoreOptions core = CoreOptionsOf(options, {});
  EXPECT_EQ(core.partitions, 4u);
  EXPECT_EQ(core.servers, 2u);
  EXPECT_EQ(core.run_id, "run-9");
  EXPECT_TRUE(core.retry_failed);
  EXPECT_EQ(core.planted_bugs.no_reverify, MUSTER_WITH_FAILPOINTS);
  EXPECT_EQ(core.rejected_records_max, 5u);
  EXPECT_EQ(core.failed_shards_max, 6u);
  EXPECT_EQ(core.snapshot_interval, std::chrono::seconds(3));
}

TEST(CoreOptionsOf, ACallOfAMemberIsKeptForAPartOfTheSilenceLimit) {
  using std::chrono::milliseconds;
  MasterOptions options{Job(), "127.0.0.1:0", "run-9", true, {}};
  options.job.group.global_batch = 4;
  options.job.group.silence_limit = milliseconds(600);
  EXPECT_EQ(CoreOptionsOf(options, {}).group->heartbeat_interval, milliseconds(150));
  options.job.group.silence_limit = milliseconds(5'000);
  EXPECT_EQ(CoreOptionsOf(options, {}).group->heartbeat_interval, milliseconds(500));
}

TEST(RunMaster, RefusesAnAddressThatOthersCanReach) {
  EXPECT_THAT(RunMaster({Job(), "0.0.0.0:1", "run", false, {}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("insecure: true")));
}

TEST(RunMaster, GoesOnWithTheJobOfItsIdOnly) {
  testing::TempDir folder;
  JobSpec job = Job();
  job.state_directory = folder.path();
  job.datasets.resize(1);
  job.datasets[0].source = LinesSpec{.files = {folder.File("data.csv")}};
  ASSERT_THAT(WriteFileAtomically(folder.File("data.csv"), "1\n2\n"), testing::IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, SourceCatalog::Open(job, nullptr));
  ASSERT_THAT(OpenRocksdbJournal(folder.File("journal"),
                                 {job.name, FixedFields(job), catalog->Fingerprint(), "id-1"})
                  .status(),
              testing::IsOk());
  EXPECT_THAT(RunMaster({job, "127.0.0.1:0", "run", false, {}, "id-2"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       ::testing::AllOf(HasSubstr("id id-1, not id-2"), HasSubstr(folder.path()))));
  EXPECT_THAT(RunMaster({job, "127.0.0.1:0", "run", false, {}, "no id"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--job-id")));
}

#if MUSTER_WITH_FAILPOINTS
TEST(RunMaster, ASignalEndsItWhileItIndexes) {
  testing::TempDir folder;
  JobSpec job = Job();
  job.state_directory = folder.path();
  job.datasets[0].source = LinesSpec{.files = {folder.File("data.csv")}};
  ASSERT_THAT(WriteFileAtomically(folder.File("data.csv"), "1\n2\n"), testing::IsOk());
  const auto index_and_be_told = [&] {
    (void)ArmFailpoints({.actions = "index.before-write=delay:20000ms"});
    std::thread teller([&] {
      while (::access(folder.File("index").c_str(), F_OK) != 0) std::this_thread::yield();
      ::kill(::getpid(), SIGTERM);
    });
    teller.detach();
    (void)RunMaster({job, "127.0.0.1:0", "run", false, {}});
    std::_Exit(0);
  };
  EXPECT_EXIT(index_and_be_told(), ::testing::KilledBySignal(SIGTERM), "");
}
#endif

TEST(RunMaster, AJournalThatIsGoneIsNotReplacedByAnEmptyOne) {
  testing::TempDir folder;
  JobSpec job = Job();
  job.state_directory = folder.path();
  job.snapshot_directory = folder.File("snapshots");
  job.datasets[0].source = LinesSpec{.files = {folder.File("data.csv")}};
  ASSERT_THAT(WriteFileAtomically(folder.File("data.csv"), "1\n2\n"), testing::IsOk());
  ASSERT_THAT(ClaimSnapshotDirectory(OpenDirectoryStore(job.snapshot_directory).get(),
                                     {"id-1", job.name, folder.path()}, {}),
              testing::IsOk());
  EXPECT_THAT(RunMaster({job, "127.0.0.1:0", "run", false, {}, "id-2", folder.File("token")}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the journal of the job 'job' is missing")));
  EXPECT_FALSE(std::filesystem::exists(folder.File("journal"))) << "a copy may be put there";
}

TEST(RunMaster, SaysWhichDataAreMissing) {
  testing::TempDir folder;
  JobSpec job = Job();
  job.state_directory = folder.path();
  job.datasets[0].source = LinesSpec{.files = {folder.File("absent-*.csv")}};
  EXPECT_THAT(RunMaster({job, "127.0.0.1:0", "run", false, {}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent-*.csv")));
}

}  // namespace
}  // namespace muster
