#include "cli/state/stored_job.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/ask/query_commands.h"
#include "cli/steer/event_commands.h"
#include "cli/steer/order_commands.h"
#include "job/file/load_job.h"
#include "master/core/master_core.h"
#include "master/journal/rocksdb_journal.h"
#include "master/service/master_main.h"
#include "master/sources/source_catalog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

constexpr char kJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: demo}
spec:
  partitions: 4
  stateDirectory: state
  leases: {failuresMax: 1}
  datasets: [{name: train, files: [data.csv], minibatchSize: 2, minibatchesPerShard: 1}]
  replicaSpecs: {ps: {replicas: 1}, worker: {replicas: 1, command: [./t]}}
)";

/// The state directory of a job with one FAILED shard, of which everything was killed.
class StoredJobTest : public ::testing::Test {
 protected:
  StoredJobTest() {
    EXPECT_THAT(WriteFileAtomically(folder_.File("job.yaml"), kJob), IsOk());
    EXPECT_THAT(WriteFileAtomically(folder_.File("data.csv"), "1\n2\n3\n4\n"), IsOk());
  }
  void Run() {
    MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob job, LoadJob(folder_.File("job.yaml"), ""));
    const StateDirectory state(job.spec.state_directory);
    ASSERT_THAT(state.Create(), IsOk());
    ASSERT_THAT(WriteFileAtomically(state.job_copy(), kJob), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, SourceCatalog::Open(job.spec, nullptr));
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const auto journal,
        OpenRocksdbJournal(state.journal(),
                           {job.spec.name, FixedFields(job.spec), catalog->Fingerprint()}));
    const StepTime at{TimePoint(std::chrono::seconds(50)), WallTime(7)};
    MasterCore core(
        CoreOptionsOf({.job = job.spec, .listen_address = "", .run_id = "run-1"}, catalog->Plans()),
        journal->TakeState(), at);
    TableSpec table;
    table.name = "embedding";
    table.dim = 4;
    ASSERT_THAT(core.RegisterTable(table, at).status(), IsOk());
    WorkerExchangeRequest request;
    request.worker = "worker-0";
    request.incarnation = 1;
    request.sequence = 1;
    request.want = 1;
    const ShardGrant grant = core.ExchangeWorker(request, at).value().grants.at(0);
    request.sequence = 2;
    request.returned.push_back({grant.shard, grant.token, true, "bad luck\nat line 1", false});
    ASSERT_THAT(core.ExchangeWorker(request, at), IsOk());
    ASSERT_THAT(journal->Write(core.TakeMutations()), IsOk());
  }
  /// What a command printed, and its exit code.
  template <typename Command>
  int Call(Command command) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = command();
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  TempDir folder_;
  QueryOptions by_file_{.target = {.job_file = folder_.File("job.yaml"), .state_directory = ""}};
  QueryOptions by_directory_{.target = {.job_file = "", .state_directory = folder_.File("state")}};
  std::string out_;
  std::string err_;
};

TEST_F(StoredJobTest, AJobThatNeverRanIsNotFound) {
  EXPECT_THAT(OpenStoredJob(by_file_.target).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no job")));
  EXPECT_EQ(Call([&] { return StatusCommand({.query = by_file_}); }), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("no job runs with the state directory"));
}

TEST_F(StoredJobTest, EveryQuestionIsAnsweredWithAWordOnStderr) {
  Run();
  for (const QueryOptions& query : {by_file_, by_directory_}) {
    EXPECT_EQ(Call([&] { return StatusCommand({.query = query}); }), kExitSucceeded) << err_;
    EXPECT_THAT(out_, AllOf(HasSubstr("demo: stopped"), HasSubstr("train")));
    EXPECT_THAT(err_, HasSubstr("the job is not running"));
    EXPECT_EQ(Call([&] { return NodesCommand(query); }), kExitSucceeded);
    EXPECT_THAT(out_, AllOf(HasSubstr("worker-0"), HasSubstr("exited")));
    EXPECT_EQ(Call([&] { return steer::EventsCommand({.query = query, .last = 1}); }),
              kExitSucceeded);
    EXPECT_THAT(out_, HasSubstr("shard-failed worker-0"));
  }
  EXPECT_EQ(Call([&] { return steer::EventsCommand({.query = by_file_, .follow = true}); }),
            kExitSucceeded)
      << "there is nothing to follow";
  EXPECT_THAT(out_, HasSubstr("shard-failed worker-0"));
}

TEST_F(StoredJobTest, FailedShardsWithFileLinesAndReasons) {
  Run();
  ShardsOptions options{.query = by_file_, .state = "failed"};
  EXPECT_EQ(Call([&] { return ShardsCommand(options); }), kExitSucceeded);
  EXPECT_THAT(out_,
              AllOf(HasSubstr("0/0/0"), HasSubstr(folder_.File("data.csv") + ", lines 1 to 2"),
                    HasSubstr("\n    worker-0: bad luck\n      at line 1\n")));
  options.query.output = OutputFormat::kJson;
  EXPECT_EQ(Call([&] { return ShardsCommand(options); }), kExitSucceeded);
  const nlohmann::json shard = nlohmann::json::parse(out_)["shards"][0];
  EXPECT_EQ(shard["source"], folder_.File("data.csv"));
  EXPECT_EQ(shard["first_line"], 1);
  EXPECT_EQ(shard["records"], 2);
}

TEST_F(StoredJobTest, RetryNamesTheRunThatDoesIt) {
  Run();
  const steer::RetryOptions options{.query = by_file_, .ids = {"0/0/0"}};
  EXPECT_EQ(Call([&] { return steer::RetryCommand(options); }), kExitUnreachable);
  EXPECT_THAT(err_, AllOf(HasSubstr("no job runs"),
                          HasSubstr("muster run " + folder_.File("job.yaml") + " --retry-failed")));
}

TEST_F(StoredJobTest, ExportTakesTheManifestFromTheJournal) {
  Run();
  const ExportCommandOptions options{.query = by_directory_,
                                     .output_directory = folder_.File("out")};
  EXPECT_EQ(Call([&] { return ExportCommand(options); }), kExitSucceeded) << err_;
  EXPECT_THAT(out_, HasSubstr("1 table written"));
}

TEST_F(StoredJobTest, WhereTheSnapshotsLie) {
  Run();
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto stored, OpenStoredJob(by_directory_.target));
  MUSTER_ASSERT_OK_AND_ASSIGN(const v1::GetManifestResponse manifest, stored->GetManifest({}));
  EXPECT_EQ(manifest.snapshot_directory(), folder_.File("state/snapshots"));
  EXPECT_THAT(stored->Drain(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no job runs")));
}

}  // namespace
}  // namespace muster
