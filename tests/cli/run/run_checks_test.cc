#include "cli/run/run_checks.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"
#include "master/journal/rocksdb_journal.h"
#include "master/service/snapshot_owner.h"
#include "master/sources/source_catalog.h"
#include "sharding/lines/line_index.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

class RunChecksTest : public ::testing::Test {
 protected:
  RunChecksTest() {
    EXPECT_THAT(WriteFileAtomically(folder_.File("job.yaml"), R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: demo}
spec:
  stateDirectory: deep/state
  snapshots: {directory: snapshots}
  datasets: [{name: train, files: [data.csv]}]
  replicaSpecs: {ps: {replicas: 1}, worker: {replicas: 1, command: [./t]}}
)"),
                IsOk());
    EXPECT_THAT(WriteFileAtomically(folder_.File("data.csv"), "1\n2\n"), IsOk());
    auto job = LoadJob(folder_.File("job.yaml"), "");
    EXPECT_THAT(job.status(), IsOk());
    job_ = *std::move(job);
  }
  /// The files that a first run leaves.
  void Run() {
    ASSERT_THAT(state_.Create(), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, SourceCatalog::Open(job_.spec, nullptr));
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const auto journal,
        OpenRocksdbJournal(state_.journal(), {job_.spec.name, FixedFields(job_.spec),
                                              catalog->Fingerprint(), "id-1"}));
    ASSERT_THAT(ClaimSnapshotDirectory(OpenDirectoryStore(job_.spec.snapshot_directory).get(),
                                       {journal->job_id(), job_.spec.name, state_.path()}, {}),
                IsOk());
  }
  std::set<std::string> Everything() const {
    std::set<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      paths.insert(entry.path());
    }
    return paths;
  }

  TempDir folder_;
  LoadedJob job_;
  const StateDirectory state_{folder_.File("deep/state")};
};

TEST_F(RunChecksTest, AJobKeepsItsIdAndANewOneGetsAFreshOne) {
  EXPECT_EQ(JobIdOf(state_, "fresh"), "fresh");
  Run();
  EXPECT_EQ(JobIdOf(state_, "fresh"), "id-1");
  std::filesystem::remove_all(state_.journal());
  EXPECT_EQ(JobIdOf(state_, "fresh"), "fresh") << "another job in the same place";
  std::filesystem::create_directories(state_.journal());
  ASSERT_THAT(WriteFileAtomically(state_.journal() + "/CURRENT", "damaged"), IsOk());
  EXPECT_EQ(JobIdOf(state_, "fresh"), "") << "the master says what is wrong with it";
}

TEST_F(RunChecksTest, ANewJobAndAResumedOneAreFineAndNothingIsCreated) {
  for (bool resumed : {false, true}) {
    if (resumed) Run();
    const std::set<std::string> before = Everything();
    EXPECT_THAT(CheckDirectories(job_, nullptr), IsOk());
    EXPECT_EQ(Everything(), before);
  }
}

TEST_F(RunChecksTest, AFolderThatCannotBeMade) {
  ASSERT_THAT(WriteFileAtomically(folder_.File("snapshots"), "a file"), IsOk());
  EXPECT_THAT(CheckDirectories(job_, nullptr).message(),
              AllOf(HasSubstr("spec.snapshots.directory"), HasSubstr(folder_.File("snapshots"))));
  std::filesystem::remove(folder_.File("snapshots"));
  ASSERT_THAT(WriteFileAtomically(folder_.File("deep"), "a file"), IsOk());
  EXPECT_THAT(CheckDirectories(job_, nullptr).message(),
              AllOf(HasSubstr("spec.stateDirectory"), HasSubstr(folder_.File("deep/state"))));
}

TEST_F(RunChecksTest, AStateDirectoryInUse) {
  Run();
  MUSTER_ASSERT_OK_AND_ASSIGN(const StateLock lock, StateLock::Acquire(state_));
  EXPECT_THAT(CheckDirectories(job_, nullptr),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("in use by another")));
}

TEST_F(RunChecksTest, DataThatChangedSinceTheJobBegan) {
  Run();
  ASSERT_THAT(WriteFileAtomically(folder_.File("data.csv"), "1\n2\n3\n"), IsOk());
  EXPECT_THAT(CheckDirectories(job_, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("dataset 'train'"), HasSubstr("has changed"))));
}

TEST_F(RunChecksTest, ALineOverTheLimitIsFoundBeforeAnythingStarts) {
  ASSERT_THAT(WriteFileAtomically(folder_.File("data.csv"),
                                  "1\n" + std::string(kRecordBytesMax, 'x') + "\n3\n"),
              IsOk());
  EXPECT_THAT(CheckDirectories(job_, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("dataset 'train'"), HasSubstr("data.csv:2:"),
                             HasSubstr("16 MiB"), HasSubstr("spec.datasets[].files"))));
}

TEST_F(RunChecksTest, AJournalOfOtherFieldsEvenWithoutTheCopyOfTheJobFile) {
  Run();
  job_.spec.seed = 9;
  EXPECT_THAT(CheckDirectories(job_, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("spec.seed")));
}

TEST_F(RunChecksTest, SnapshotsOfAnotherJob) {
  ASSERT_THAT(ClaimSnapshotDirectory(OpenDirectoryStore(folder_.File("snapshots")).get(),
                                     {"id-2", "trains", "/trains"}, {}),
              IsOk());
  EXPECT_THAT(CheckDirectories(job_, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'trains'")));
}

TEST_F(RunChecksTest, MemoryLimitsBeyondTheMachineAreSaid) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  JobSpec& job = job_.spec;
  job.worker.replicas = 2;
  EXPECT_EQ(LimitsBeyond(job, kGiB), "") << "no limits";
  job.worker.limits.memory_bytes = 200 * kGiB;
  EXPECT_THAT(LimitsBeyond(job, 23 * kGiB), AllOf(HasSubstr("400 GiB"), HasSubstr("23 GiB")));
  EXPECT_EQ(LimitsBeyond(job, 400 * kGiB), "");
  EXPECT_EQ(LimitsBeyond(job, 0), "") << "not known";
  job.ps.limits.memory_bytes = kGiB;
  EXPECT_THAT(LimitsBeyond(job, 400 * kGiB), HasSubstr("401 GiB"));
  job.servers_joined = 1;
  EXPECT_EQ(LimitsBeyond(job, 400 * kGiB), "") << "it is on another machine";
  job.worker.limits.memory_bytes = uint64_t{1} << 62;
  job.worker.replicas = 1'000;
  EXPECT_NE(LimitsBeyond(job, 400 * kGiB), "");
}

TEST_F(RunChecksTest, ARunThatContinuesKnowsItsStarts) {
  EXPECT_EQ(StartsOf(state_, "run-1").master, 0u) << "there is no journal";
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal,
                                OpenRocksdbJournal(state_.journal(), {"demo", {}, {}, "id-1"}));
    MetaRecord meta;
    meta.run_id = "run-1";
    NodeRecord master;
    master.name = master.role = "master";
    master.told_start = StartNumber(4);
    ASSERT_THAT(journal->Write(std::vector<Mutation>{meta, master}), IsOk());
  }
  EXPECT_EQ(StartsOf(state_, "run-1").master, 4u);
  EXPECT_EQ(StartsOf(state_, "run-1").scaler, 0u);
  EXPECT_EQ(StartsOf(state_, "run-2").master, 0u) << "another run";
}

}  // namespace
}  // namespace muster
