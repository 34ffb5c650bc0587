#include "master/service/job_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "master/journal/rocksdb_journal.h"
#include "master/service/master_main.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

/// A job of four shards of two records. Its master had one fail, one done, two in work, and was
/// killed; its data are gone.
class JobArchiveTest : public ::testing::Test {
 protected:
  JobArchiveTest() {
    job_.name = "demo";
    job_.state_directory = folder_.File("state");
    job_.snapshot_directory = folder_.File("snapshots");
    job_.leases.failures_max = 1;
    job_.partitions = 2;
    DatasetSpec dataset;
    dataset.name = "train";
    dataset.source = LinesSpec{.files = {folder_.File("data.csv")}, .header = true};
    dataset.minibatch_size = 2;
    dataset.minibatches_per_shard = 1;
    job_.datasets = {dataset};
  }

  void RunAndKill() {
    const std::string data = folder_.File("data.csv");
    ASSERT_THAT(WriteFileAtomically(data, "head\n1\n2\n3\n4\n5\n6\n7\n8\n"), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, SourceCatalog::Open(job_, nullptr));
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const auto journal,
        OpenRocksdbJournal(job_.state_directory + "/journal",
                           {job_.name, FixedFields(job_), catalog->Fingerprint()}));
    const StepTime at{TimePoint(std::chrono::seconds(50)), WallTime(7)};
    MasterCore core(
        CoreOptionsOf({.job = job_, .listen_address = "", .run_id = "run-1"}, catalog->Plans()),
        journal->TakeState(), at);
    WorkerExchangeRequest request;
    request.worker = "worker-0";
    request.incarnation = 1;
    request.sequence = 1;
    request.want = 4;
    const std::vector<ShardGrant> grants = core.ExchangeWorker(request, at).value().grants;
    ASSERT_EQ(grants.size(), 4u);
    request.sequence = 2;
    for (const ShardGrant& grant : grants) {
      request.held.push_back({grant.shard, grant.token, grant.restore_epoch, {}, {}, 1});
    }
    request.done.push_back({grants[0].shard, grants[0].token, grants[0].restore_epoch, {}, {}});
    request.returned.push_back({grants[1].shard, grants[1].token, true, "bad luck", false});
    ASSERT_THAT(core.ExchangeWorker(request, at), IsOk());
    ASSERT_THAT(journal->Write(core.TakeMutations()), IsOk());
    std::filesystem::remove(data);
  }

  testing::TempDir folder_;
  JobSpec job_;
};

TEST_F(JobArchiveTest, NothingRanYet) {
  EXPECT_THAT(JobArchive::Open(job_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no journal")));
}

TEST_F(JobArchiveTest, ShowsAKilledJobAsStoppedAndItsNodesAsExited) {
  RunAndKill();
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto archive, JobArchive::Open(job_));
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobStatus status, archive->Status());
  EXPECT_EQ(status.name, "demo");
  EXPECT_EQ(status.state, JobState::kStopped);
  EXPECT_EQ(status.master_incarnation, 1u);
  const EpochStatus& epoch = status.datasets[0].epochs[0];
  EXPECT_EQ(epoch.records_done, 2u);
  EXPECT_EQ(epoch.shards.failed, 1u);
  EXPECT_EQ(epoch.shards.leased, 0u);
  ASSERT_EQ(status.nodes.size(), 1u);
  EXPECT_EQ(status.nodes[0].state, NodeState::kExited);
  EXPECT_EQ(status.nodes[0].last_exit, "not seen");
}

TEST_F(JobArchiveTest, NamesTheLinesOfAFailedShard) {
  RunAndKill();
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto archive, JobArchive::Open(job_));
  v1::ListShardsRequest request;
  request.set_state("failed");
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardPage shards, archive->Shards(request));
  ASSERT_EQ(shards.shards.size(), 1u);
  EXPECT_EQ(shards.shards[0].source, folder_.File("data.csv"));
  EXPECT_EQ(shards.shards[0].first_line, 4u);
  EXPECT_EQ(shards.shards[0].records, 2u);
  EXPECT_THAT(shards.shards[0].reasons[0], HasSubstr("bad luck"));
}

TEST_F(JobArchiveTest, TellsEventsAndManifestAndChangesNothing) {
  RunAndKill();
  std::string snapshots = std::exchange(job_.snapshot_directory, "");
  for (int i = 0; i < 2; ++i) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto archive, JobArchive::Open(job_));
    MUSTER_ASSERT_OK_AND_ASSIGN(const MasterEvents events, archive->Events({}));
    ASSERT_GE(events.events.size(), 2u);
    EXPECT_EQ(events.events[0].kind, "run-started");
    EXPECT_EQ(events.events.rbegin()->kind, "shard-failed");
    MUSTER_ASSERT_OK_AND_ASSIGN(const v1::GetManifestResponse manifest, archive->ManifestOf({}));
    EXPECT_EQ(manifest.partitions_size(), 2);
    EXPECT_EQ(manifest.snapshot_directory(), snapshots) << "as journaled";
  }
}

TEST_F(JobArchiveTest, RefusesTheJournalOfAnotherJob) {
  RunAndKill();
  job_.seed = 8;
  EXPECT_THAT(JobArchive::Open(job_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("spec.seed")));
}

}  // namespace
}  // namespace muster
