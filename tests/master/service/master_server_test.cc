#include "master/service/master_server.h"

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "tests/master/service/master_server_fixture.h"
#include "tests/support/memory_journal.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST_F(MasterServerTest, TakesAJobFromHelloToSucceeded) {
  Start();
  ASSERT_TRUE(Hello(kCompatibleVersion).ok());
  EXPECT_EQ(hello_.job(), "flights");
  EXPECT_EQ(hello_.partition_count(), 2u);
  v1::RegisterTableRequest table;
  table.mutable_table()->set_name("embedding");
  table.mutable_table()->set_dim(4);
  v1::RegisterTableResponse table_id;
  ASSERT_TRUE(Call(worker_.get(), &Worker::RegisterTable, table, &table_id).ok());
  EXPECT_EQ(table_id.id(), 1u);

  const v1::ServerExchangeReply commands = RegisterServer();
  ASSERT_EQ(commands.owns_size(), 2);
  EXPECT_EQ(commands.tables_size(), 1);

  v1::WorkerExchangeRequest want;
  want.set_want(5);
  v1::WorkerExchangeReply granted;
  ASSERT_TRUE(Exchange(want, &granted).ok());
  ASSERT_EQ(granted.grants_size(), 2);
  EXPECT_EQ(granted.grants(1).work().files(0).path(), "/data/10");
  EXPECT_EQ(granted.map().partitions_size(), 2);
  v1::WorkerExchangeRequest report;
  for (const v1::ShardGrant& grant : granted.grants()) {
    v1::DoneReport* done = report.add_done();
    *done->mutable_shard() = grant.shard();
    done->set_token(grant.token());
    done->set_restore_epoch(grant.restore_epoch());
  }
  v1::WorkerExchangeReply verdicts;
  ASSERT_TRUE(Exchange(report, &verdicts).ok());
  ASSERT_EQ(verdicts.verdicts_size(), 2);
  EXPECT_EQ(verdicts.verdicts(0).code(), 0u);

  SnapshotEverything(commands);

  const v1::JobStatus status = Status();
  EXPECT_EQ(status.state(), static_cast<uint32_t>(JobState::kSucceeded));
  EXPECT_EQ(status.datasets(0).epochs(0).records_committed(), 20u);
  EXPECT_EQ(status.nodes_size(), 2);
  EXPECT_EQ(status.counters().snapshots_accepted(), 2u);
  v1::WorkerExchangeReply end;
  ASSERT_TRUE(Exchange(want, &end).ok());
  EXPECT_EQ(end.directive(), 1u);
  v1::GetManifestResponse manifest;
  ASSERT_TRUE(Call(admin_.get(), &Admin::GetManifest, v1::GetManifestRequest(), &manifest).ok());
  EXPECT_EQ(manifest.partitions_size(), 2);
  EXPECT_EQ(manifest.tables(0).name(), "embedding");
  v1::ListEventsResponse events;
  ASSERT_TRUE(Call(admin_.get(), &Admin::ListEvents, v1::ListEventsRequest(), &events).ok());
  EXPECT_EQ(events.events(0).kind(), "run-started");
  EXPECT_EQ(status.events_newest(), static_cast<uint64_t>(events.events_size()));
}

TEST_F(MasterServerTest, DrainsANodeAndListsPartitions) {
  Start();
  ASSERT_TRUE(Hello(kCompatibleVersion).ok());
  v1::WorkerExchangeRequest want;
  want.set_want(1);
  v1::WorkerExchangeReply granted;
  ASSERT_TRUE(Exchange(want, &granted).ok());
  v1::DrainNodeRequest request;
  v1::DrainNodeResponse response;
  const auto drain = [&] { return Call(admin_.get(), &Admin::DrainNode, request, &response); };
  EXPECT_EQ(drain().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "no name";
  request.set_node("worker-0");
  request.set_timeout_ms(86'400'001);
  EXPECT_EQ(drain().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_timeout_ms(0);
  ASSERT_TRUE(drain().ok());
  EXPECT_EQ(response.drain(), "draining");
  EXPECT_EQ(response.left(), 1u);
  EXPECT_EQ(Status().nodes(0).drain(), "draining");
  EXPECT_EQ(Status().nodes(0).drain_left(), 1u);
  v1::ResumeNodeRequest resume;
  resume.set_node("worker-0");
  v1::ResumeNodeResponse resumed;
  EXPECT_TRUE(Call(admin_.get(), &Admin::ResumeNode, resume, &resumed).ok());
  EXPECT_EQ(Status().nodes(0).drain(), "none");
  v1::ListPartitionsResponse partitions;
  ASSERT_TRUE(
      Call(admin_.get(), &Admin::ListPartitions, v1::ListPartitionsRequest(), &partitions).ok());
  EXPECT_EQ(partitions.total(), 2u);
  EXPECT_EQ(partitions.partitions(0).state(), "unowned");
}

TEST_F(MasterServerTest, GoesOnAfterARestart) {
  Start();
  ASSERT_TRUE(Hello(kCompatibleVersion).ok());
  v1::WorkerExchangeRequest want;
  want.set_want(1);
  v1::WorkerExchangeReply granted;
  ASSERT_TRUE(Exchange(want, &granted).ok());
  server_->Stop();
  Start();
  EXPECT_TRUE(Status().grace_period());
  v1::WorkerExchangeRequest held;
  v1::HeldLease* lease = held.add_held();
  *lease->mutable_shard() = granted.grants(0).shard();
  lease->set_token(granted.grants(0).token());
  lease->set_restore_epoch(granted.grants(0).restore_epoch());
  v1::WorkerExchangeReply reply;
  ASSERT_TRUE(Exchange(held, &reply).ok());
  EXPECT_EQ(reply.lost_size(), 0);
  EXPECT_EQ(reply.master_incarnation(), 2u);
  v1::ListShardsResponse shards;
  v1::ListShardsRequest leased;
  leased.set_state("leased");
  ASSERT_TRUE(Call(admin_.get(), &Admin::ListShards, leased, &shards).ok());
  ASSERT_EQ(shards.total(), 1u);
  EXPECT_EQ(shards.shards(0).worker(), "worker-0");
  EXPECT_EQ(Status().counters().reasserted_leases(), 1u);
}

TEST_F(MasterServerTest, ATakenPortIsAnErrorThatNamesIt) {
  Start();
  options_.listen_address = "127.0.0.1:" + std::to_string(server_->port());
  testing::MemoryJournal other;
  EXPECT_THAT(MasterServer::Start(options_, &other, &clock_),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(options_.listen_address), HasSubstr("the port is taken"))));
  EXPECT_FALSE(other.state().meta.has_value()) << "its incarnation was not counted up";
}

TEST_F(MasterServerTest, AJournalThatFailsIsFatalAndAnswersNothing) {
  Start();
  journal_.FailWith(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(Hello(kCompatibleVersion),
              RpcIs(grpc::StatusCode::UNAVAILABLE, HasSubstr("stopping")));
  ASSERT_TRUE(server_->failure().has_value());
  EXPECT_THAT(*server_->failure(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk is full")));
}

TEST_F(MasterServerTest, WorkersAreToldWhatChangedInTheMap) {
  Start();
  RegisterServer();
  v1::WorkerExchangeRequest request;
  v1::WorkerExchangeReply reply;
  ASSERT_TRUE(Exchange(request, &reply).ok());
  ASSERT_TRUE(reply.has_map());
  EXPECT_FALSE(reply.has_map_changes());
  EXPECT_EQ(reply.map().servers(0).lanes(0).addresses(0), "unix:/x");
  request.set_map_version(reply.map().version());
  request.set_map_base(reply.map().version());
  ASSERT_TRUE(Exchange(request, &reply).ok());
  EXPECT_FALSE(reply.has_map() || reply.has_map_changes());
  RegisterServer("unix:/y");
  for (int worker = 0; worker < 2; ++worker) {
    ASSERT_TRUE(Exchange(request, &reply).ok());
    EXPECT_FALSE(reply.has_map());
    ASSERT_TRUE(reply.has_map_changes());
    EXPECT_EQ(reply.map_changes().base(), request.map_version());
    EXPECT_EQ(reply.map_changes().partitions_size(), 0) << "it is the same process";
    EXPECT_EQ(reply.map_changes().servers(0).lanes(0).addresses(0), "unix:/y");
    EXPECT_EQ(reply.master_incarnation(), 1u) << "and the rest of the answer";
  }
}

/// A server that owns a partition of a job that trains, and writes snapshots of it.
class SnapshotsTest : public MasterServerTest {
 protected:
  void SetUp() override {
    Start();
    const v1::ServerExchangeReply first = RegisterServer();
    for (const v1::OwnCommand& own : first.owns()) {
      v1::OwnedPartition* owned = beat_.add_owned();
      owned->set_partition(own.partition());
      owned->set_epoch(own.epoch());
    }
    v1::WorkerExchangeRequest want;
    want.set_want(1);
    v1::WorkerExchangeReply granted;
    ASSERT_TRUE(Exchange(want, &granted).ok());
  }
  void Snapshot(const std::string& name) {
    ASSERT_THAT(WriteFileAtomically(folder_.File(name), "x"), IsOk());
    const v1::ServerExchangeReply commands = Beat();
    ASSERT_GT(commands.snapshots_size(), 0) << name;
    const v1::SnapshotCommand& command = commands.snapshots(0);
    v1::SnapshotReport* report = beat_.add_snapshots();
    report->set_partition(command.partition());
    report->set_epoch(command.epoch());
    report->mutable_manifest()->set_number(command.number());
    report->mutable_manifest()->set_cut(command.cut());
    v1::SnapshotFile* file = report->mutable_manifest()->add_files();
    file->set_name(name);
    file->set_bytes(1);
    file->set_number(command.number());
    Beat();
    beat_.clear_snapshots();
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(folder_.File(name)); }
};

TEST_F(SnapshotsTest, FilesThatNoManifestNamesAreGoneWhenItHasStopped) {
  Snapshot("first.sst");
  Snapshot("second.sst");
  server_->Stop();
  EXPECT_FALSE(Exists("first.sst"));
  EXPECT_TRUE(Exists("second.sst"));
}

TEST_F(SnapshotsTest, AFullDiskIsTheReasonWhyNothingIsCommitted) {
  EXPECT_EQ(Status().reason(), "");
  beat_.set_snapshot_error("cannot write p0: No space left on device");
  Beat();
  clock_.Advance(std::chrono::seconds(9));
  EXPECT_EQ(Status().reason(), "") << "it may pass";
  clock_.Advance(std::chrono::seconds(121));
  Beat();
  EXPECT_EQ(
      Status().reason(),
      "nothing was committed for 2:10: the disk of ps-0's snapshots is full: cannot write p0: "
      "No space left on device");
}

TEST_F(SnapshotsTest, FilesOfAManifestThatIsReadStay) {
  Snapshot("first.sst");
  v1::GetManifestResponse manifest;
  ASSERT_TRUE(Call(admin_.get(), &Admin::GetManifest, v1::GetManifestRequest(), &manifest).ok());
  Snapshot("second.sst");
  Snapshot("third.sst");
  // Files go in order.
  while (Exists("second.sst")) std::this_thread::yield();
  EXPECT_TRUE(Exists("first.sst")) << "an export reads it";
}

TEST_F(MasterServerTest, OrphanSnapshotsGoWithANewRunAndOnlyThen) {
  Start();
  server_->Stop();
  const std::string orphan = folder_.File("p00000/e1-s1.1-base.sst");
  std::filesystem::create_directories(folder_.File("p00000"));
  ASSERT_THAT(WriteFileAtomically(orphan, "x"), IsOk());
  Start();
  EXPECT_TRUE(std::filesystem::exists(orphan)) << "a live server's next report may name it";
  server_->Stop();
  options_.core.run_id = "run-2";
  Start();
  server_->Stop();
  EXPECT_FALSE(std::filesystem::exists(orphan));
}

TEST_F(MasterServerTest, AnotherJobsSnapshotsAreLeftAlone) {
  Start();
  server_->Stop();
  const std::string theirs = folder_.File("p00000/e1-s1.1-base.sst");
  std::filesystem::create_directories(folder_.File("p00000"));
  ASSERT_THAT(WriteFileAtomically(theirs, "x"), IsOk());
  testing::MemoryJournal other(DurableState{}, "other");
  options_.job.name = "trains";
  options_.core.run_id = "run-2";
  EXPECT_THAT(MasterServer::Start(options_, &other, &clock_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'flights'"), HasSubstr("'trains'"))));
  EXPECT_TRUE(std::filesystem::exists(theirs));
  EXPECT_FALSE(other.state().meta.has_value()) << "nothing was journaled";
  // Nor are they after a restart within its run.
  options_.core.run_id = "run-1";
  testing::MemoryJournal restarted(journal_.state(), "other");
  EXPECT_THAT(MasterServer::Start(options_, &restarted, &clock_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'trains'")));
}

TEST(CheckListening, OtherMachinesNeedTlsOrTheWord) {
  for (const char* good : {"127.0.0.1:1", "127.9.9.9:0", "localhost:80", "[::1]:65535"}) {
    EXPECT_THAT(CheckListening(good, {}, false), IsOk()) << good;
  }
  for (const char* bad : {"0.0.0.0:1", "10.0.0.1:1", "example.com:1", "[::]:1", "127.0.0.1.x:1"}) {
    EXPECT_THAT(CheckListening(bad, {}, false),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be TLS")))
        << bad;
    EXPECT_THAT(CheckListening(bad, {}, true), IsOk()) << bad;
    EXPECT_THAT(CheckListening(bad, {.insecure = true}, false), IsOk()) << bad;
  }
  for (const char* bad : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_THAT(CheckListening(bad, {}, true),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not host:port")))
        << bad;
  }
}

}  // namespace
}  // namespace muster
