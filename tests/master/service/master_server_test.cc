#include "master/service/master_server.h"

#include <grpcpp/grpcpp.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/token_file.h"
#include "proto/admin.grpc.pb.h"
#include "proto/control.grpc.pb.h"
#include "proto/rpc/metadata.h"
#include "sharding/job_identity.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

MATCHER_P2(RpcIs, code, message, "") {
  *result_listener << arg.error_code() << ": " << arg.error_message();
  return arg.error_code() == code &&
         ::testing::ExplainMatchResult(message, arg.error_message(), result_listener);
}

class MasterServerTest : public ::testing::Test {
 protected:
  MasterServerTest() {
    options_.job.name = "flights";
    options_.job.seed = 7;
    options_.job.partitions = 2;
    options_.job.snapshot_directory = folder_.path();
    DatasetPlan plan{"train", DatasetMode::kTrain, 1, 2, 20, 5, nullptr};
    plan.records_of = [](EpochIndex, ShardIndex) { return 10u; };
    options_.core.datasets = {plan};
    options_.core.partitions = 2;
    options_.core.run_id = "run-1";
    options_.core.snapshot_interval = std::chrono::milliseconds(0);
    options_.listen_address = "127.0.0.1:0";
    options_.token_file = folder_.File("token");
    options_.work_of = [](const ShardId& shard) {
      ShardWork work;
      work.path = "/data/" + ToString(shard);
      work.record_count = 10;
      return work;
    };
  }
  void Start() {
    MUSTER_ASSERT_OK_AND_ASSIGN(server_, MasterServer::Start(options_, &journal_, &clock_));
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->port()),
                                   grpc::InsecureChannelCredentials());
    worker_ = v1::WorkerService::NewStub(channel_);
    servers_ = v1::ServerService::NewStub(channel_);
    admin_ = v1::AdminService::NewStub(channel_);
  }
  template <typename Stub, typename Base, typename Request, typename Reply>
  grpc::Status Call(Stub* stub,
                    grpc::Status (Base::*method)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    if (!job_.id.empty()) context.AddMetadata(kJobIdMetadata, job_.id);
    if (!job_.name.empty()) context.AddMetadata(kJobNameMetadata, job_.name);
    context.AddMetadata(kTokenMetadata,
                        token_.has_value() ? *token_ : LoadToken(options_.token_file).value());
    context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN)));
    return (stub->*method)(&context, request, reply);
  }
  using Worker = v1::WorkerService::StubInterface;
  using Servers = v1::ServerService::StubInterface;
  using Admin = v1::AdminService::StubInterface;

  grpc::Status Hello(const std::string& version, const std::string& name = "worker-0") {
    v1::HelloRequest request;
    request.set_worker(name);
    request.set_incarnation(9);
    request.set_sdk_version(version);
    return Call(worker_.get(), &Worker::Hello, request, &hello_);
  }
  grpc::Status Exchange(v1::WorkerExchangeRequest request, v1::WorkerExchangeReply* reply) {
    if (request.worker().empty()) request.set_worker("worker-0");
    request.set_incarnation(9);
    request.set_sequence(++sequence_);
    return Call(worker_.get(), &Worker::Exchange, request, reply);
  }
  /// ps-0 registers and calls once; returns the answer.
  v1::ServerExchangeReply RegisterServer() {
    v1::RegisterServerRequest registration;
    registration.set_name("ps-0");
    registration.set_nonce(5);
    registration.set_version("0.1.0");
    registration.add_lanes()->add_addresses("unix:/x");
    v1::RegisterServerReply registered;
    EXPECT_TRUE(Call(servers_.get(), &Servers::Register, registration, &registered).ok());
    EXPECT_EQ(registered.snapshot_directory(), folder_.path());
    beat_.set_incarnation(registered.incarnation());
    return Beat();
  }
  v1::ServerExchangeReply Beat() {
    beat_.set_sequence(beat_.sequence() + 1);
    v1::ServerExchangeReply commands;
    EXPECT_TRUE(Call(servers_.get(), &Servers::Exchange, beat_, &commands).ok());
    return commands;
  }
  /// Obeys `first`, then writes every snapshot that is asked for.
  void SnapshotEverything(const v1::ServerExchangeReply& first) {
    for (const v1::OwnCommand& own : first.owns()) {
      v1::OwnedPartition* owned = beat_.add_owned();
      owned->set_partition(own.partition());
      owned->set_epoch(own.epoch());
    }
    const v1::ServerExchangeReply commands = Beat();
    ASSERT_EQ(commands.snapshots_size(), 2);
    for (const v1::SnapshotCommand& command : commands.snapshots()) {
      v1::SnapshotReport* snapshot = beat_.add_snapshots();
      snapshot->set_partition(command.partition());
      snapshot->set_epoch(command.epoch());
      snapshot->mutable_manifest()->set_number(command.number());
      snapshot->mutable_manifest()->set_cut(command.cut());
    }
    Beat();
  }
  v1::JobStatus Status() {
    v1::JobStatus status;
    EXPECT_TRUE(Call(admin_.get(), &Admin::GetStatus, v1::GetStatusRequest(), &status).ok());
    return status;
  }

  testing::TempDir folder_;
  testing::FakeClock clock_;
  JobIdentity job_{"memory", "flights"};  // of the caller; "memory": MemoryJournal's
  std::optional<std::string> token_;      // of the caller; else the job's
  MemoryJournal journal_;
  MasterServer::Options options_;
  std::unique_ptr<MasterServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> worker_;
  std::unique_ptr<v1::ServerService::Stub> servers_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  v1::HelloResponse hello_;
  v1::ServerExchangeRequest beat_;
  uint64_t sequence_ = 0;
};

TEST_F(MasterServerTest, TakesAJobFromHelloToSucceeded) {
  Start();
  ASSERT_TRUE(Hello("0.1").ok());
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
  EXPECT_EQ(granted.grants(1).work().path(), "/data/0/0/1");
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
  EXPECT_EQ(status.state(), v1::JOB_STATE_SUCCEEDED);
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
  ASSERT_TRUE(Hello("0.1").ok());
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
  EXPECT_EQ(Status().nodes(0).drain(), "");
  v1::ListPartitionsResponse partitions;
  ASSERT_TRUE(
      Call(admin_.get(), &Admin::ListPartitions, v1::ListPartitionsRequest(), &partitions).ok());
  EXPECT_EQ(partitions.total(), 2u);
  EXPECT_EQ(partitions.partitions(0).state(), "unowned");
}

TEST_F(MasterServerTest, GoesOnAfterARestart) {
  Start();
  ASSERT_TRUE(Hello("0.1").ok());
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

TEST_F(MasterServerTest, TellsItsJobAndRefusesWhoIsOfNoneOrOfAnother) {
  Start();
  job_ = {};
  ASSERT_TRUE(Hello("0.1").ok());
  EXPECT_EQ(hello_.job_id(), "memory");
  v1::RegisterServerRequest registration;
  registration.set_name("ps-0");
  registration.set_nonce(5);
  registration.set_version("0.1.0");
  v1::RegisterServerReply registered;
  ASSERT_TRUE(Call(servers_.get(), &Servers::Register, registration, &registered).ok());
  EXPECT_EQ(registered.job_id(), "memory");
  EXPECT_EQ(Status().state(), v1::JOB_STATE_RUNNING);

  v1::RegisterTableRequest table;
  table.mutable_table()->set_name("embedding");
  table.mutable_table()->set_dim(4);
  v1::RegisterTableResponse table_id;
  v1::WorkerExchangeRequest want;
  want.set_want(5);
  v1::WorkerExchangeReply granted;
  beat_.set_incarnation(registered.incarnation());
  v1::ServerExchangeReply commands;
  const auto later_calls_are = [&](const auto& refused) {
    EXPECT_THAT(Call(worker_.get(), &Worker::RegisterTable, table, &table_id), refused);
    EXPECT_THAT(Exchange(want, &granted), refused);
    EXPECT_THAT(Call(servers_.get(), &Servers::Exchange, beat_, &commands), refused);
  };
  later_calls_are(RpcIs(grpc::StatusCode::FAILED_PRECONDITION, HasSubstr("which job")));
  job_ = {"other", "flights"};
  const auto foreign =
      RpcIs(grpc::StatusCode::UNAVAILABLE,
            AllOf(HasSubstr("job 'flights' (id memory)"), HasSubstr("job 'flights' (id other)")));
  later_calls_are(foreign);
  EXPECT_THAT(Hello("0.1", "worker-7"), foreign);
  EXPECT_THAT(Hello("9.9", "worker-7"), foreign) << "whatever its version";
  registration.set_nonce(6);
  EXPECT_THAT(Call(servers_.get(), &Servers::Register, registration, &registered), foreign);
  v1::CancelResponse cancelled;
  EXPECT_THAT(Call(admin_.get(), &Admin::Cancel, v1::CancelRequest(), &cancelled), foreign);
  v1::JobStatus status;
  EXPECT_THAT(Call(admin_.get(), &Admin::GetStatus, v1::GetStatusRequest(), &status), foreign);

  job_.id = "memory";
  status = Status();
  EXPECT_EQ(status.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(status.nodes_size(), 2) << "worker-0 and ps-0";
  EXPECT_EQ(status.datasets(0).epochs(0).shards_leased(), 0u);
  v1::GetManifestResponse manifest;
  ASSERT_TRUE(Call(admin_.get(), &Admin::GetManifest, v1::GetManifestRequest(), &manifest).ok());
  EXPECT_EQ(manifest.tables_size(), 0);
  later_calls_are(::testing::Property(&grpc::Status::ok, true));
}

TEST_F(MasterServerTest, OtherVersionsAreRefusedWithBoth) {
  Start();
  EXPECT_THAT(Hello("0.2"), RpcIs(grpc::StatusCode::FAILED_PRECONDITION,
                                  AllOf(HasSubstr("'0.2'"), HasSubstr("0.1.0"))));
  EXPECT_THAT(Hello("0.10"), RpcIs(grpc::StatusCode::FAILED_PRECONDITION, HasSubstr("0.10")));
  EXPECT_TRUE(Hello("0.1.9").ok());
}

TEST_F(MasterServerTest, BadInputIsRefusedAndNamed) {
  Start();
  EXPECT_THAT(Hello("0.1", "no spaces"),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("worker: a node's name")));
  EXPECT_THAT(Hello("0.1", std::string(65, 'a')),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("65 bytes")));
  v1::WorkerExchangeRequest many;
  for (int i = 0; i < 100'001; ++i) many.add_held();
  v1::WorkerExchangeReply reply;
  EXPECT_THAT(Exchange(many, &reply), RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("held")));
  v1::WorkerExchangeRequest phase;
  phase.add_held()->set_phase(9);
  EXPECT_THAT(Exchange(phase, &reply),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("phase")));
  v1::ListShardsRequest shards;
  shards.set_state("lost");
  v1::ListShardsResponse listed;
  EXPECT_THAT(Call(admin_.get(), &Admin::ListShards, shards, &listed),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("'lost'")));
  v1::ReportNodeRequest report;
  report.set_node("worker-0");
  report.set_role("king");
  v1::ReportNodeResponse reported;
  EXPECT_THAT(Call(admin_.get(), &Admin::ReportNode, report, &reported),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("'king'")));
  report.set_role("worker");
  report.set_what("started");
  EXPECT_THAT(Call(admin_.get(), &Admin::ReportNode, report, &reported),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("start: 0")));
  EXPECT_EQ(Status().state(), v1::JOB_STATE_RUNNING) << "none of it harmed the job";
}

TEST_F(MasterServerTest, WhoLacksTheTokenAsksAndOrdersNothing) {
  Start();
  const auto refused = [](const std::string& why) {
    return RpcIs(grpc::StatusCode::UNAUTHENTICATED,
                 AllOf(HasSubstr(why), HasSubstr("scaler/token")));
  };
  const auto all_refused = [&](const std::string& why) {
    const auto call =
        [&]<typename Request, typename Reply>(
            grpc::Status (Admin::*method)(grpc::ClientContext*, const Request&, Reply*),
            const Request& request) {
          Reply reply;
          EXPECT_THAT(Call(admin_.get(), method, request, &reply), refused(why));
        };
    v1::ReportNodeRequest exited;
    exited.set_node("worker-0");
    exited.set_role("worker");
    exited.set_what("exited");
    exited.set_start(1);
    v1::DrainNodeRequest drain;
    drain.set_node("worker-0");
    v1::ResumeNodeRequest resume;
    resume.set_node("worker-0");
    call(&Admin::GetStatus, v1::GetStatusRequest());
    call(&Admin::ListShards, v1::ListShardsRequest());
    call(&Admin::GetShardMap, v1::GetShardMapRequest());
    call(&Admin::RetryShards, v1::RetryShardsRequest());
    call(&Admin::ListEvents, v1::ListEventsRequest());
    call(&Admin::ReportNode, exited);
    call(&Admin::Drain, v1::DrainRequest());
    call(&Admin::DrainNode, drain);
    call(&Admin::ResumeNode, resume);
    call(&Admin::ListPartitions, v1::ListPartitionsRequest());
    call(&Admin::Cancel, v1::CancelRequest());
    call(&Admin::GetManifest, v1::GetManifestRequest());
  };
  token_ = "";
  all_refused("lacks the job's token");
  token_ = std::string(64, '0');
  all_refused("is not the job's token");
  token_.reset();
  EXPECT_EQ(Status().state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Status().nodes_size(), 0) << "nobody believes a forged report";
  EXPECT_TRUE(Hello("0.1").ok()) << "a worker has the job's id, and no token";
}

TEST_F(MasterServerTest, ANewTokenReplacesTheOldOneAtOnce) {
  Start();
  const std::string former = LoadToken(options_.token_file).value();
  RemoveFile(options_.token_file);
  token_ = former;
  v1::JobStatus status;
  EXPECT_THAT(Call(admin_.get(), &Admin::GetStatus, v1::GetStatusRequest(), &status),
              RpcIs(grpc::StatusCode::UNAUTHENTICATED, HasSubstr("is not the job's token")));
  token_.reset();
  EXPECT_NE(LoadToken(options_.token_file).value(), former);
  EXPECT_EQ(Status().state(), v1::JOB_STATE_RUNNING);
}

TEST_F(MasterServerTest, ATokenThatOthersMayHaveReadIsNoToken) {
  ASSERT_THAT(WriteFileAtomically(options_.token_file, std::string(64, 'a')), IsOk());
  ASSERT_EQ(::chmod(options_.token_file.c_str(), 0644), 0);
  Start();
  EXPECT_NE(LoadToken(options_.token_file).value(), std::string(64, 'a'));
  EXPECT_EQ(Status().state(), v1::JOB_STATE_RUNNING);
}

TEST_F(MasterServerTest, ATakenPortIsAnErrorThatNamesIt) {
  Start();
  options_.listen_address = "127.0.0.1:" + std::to_string(server_->port());
  MemoryJournal other;
  EXPECT_THAT(MasterServer::Start(options_, &other, &clock_),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(options_.listen_address), HasSubstr("the port is taken"))));
  EXPECT_FALSE(other.state().meta.has_value()) << "its incarnation was not counted up";
}

TEST_F(MasterServerTest, AJournalThatFailsIsFatalAndAnswersNothing) {
  Start();
  journal_.FailWith(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(Hello("0.1"), RpcIs(grpc::StatusCode::UNAVAILABLE, HasSubstr("stopping")));
  ASSERT_TRUE(server_->failure().has_value());
  EXPECT_THAT(*server_->failure(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk is full")));
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
  EXPECT_FALSE(std::filesystem::exists(orphan));
}

TEST_F(MasterServerTest, AnotherJobsSnapshotsAreLeftAlone) {
  Start();
  server_->Stop();
  const std::string theirs = folder_.File("p00000/e1-s1.1-base.sst");
  std::filesystem::create_directories(folder_.File("p00000"));
  ASSERT_THAT(WriteFileAtomically(theirs, "x"), IsOk());
  MemoryJournal other(DurableState{}, "other");
  options_.job.name = "trains";
  options_.core.run_id = "run-2";
  EXPECT_THAT(MasterServer::Start(options_, &other, &clock_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'flights'"), HasSubstr("'trains'"))));
  EXPECT_TRUE(std::filesystem::exists(theirs));
  EXPECT_FALSE(other.state().meta.has_value()) << "nothing was journaled";
}

TEST_F(MasterServerTest, MoreConnectionsThanTheUsualLimitOfFilesKeepNobodyOut) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  Start();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(server_->port()));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> silent;
  for (int i = 0; i < 400; ++i) {
    silent.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(silent.back(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  EXPECT_TRUE(Hello("0.1").ok());
  for (const int fd : silent) ::close(fd);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(CheckLoopback, RefusesEverythingElse) {
  for (const char* good : {"127.0.0.1:1", "127.9.9.9:0", "localhost:80", "[::1]:65535"}) {
    EXPECT_THAT(CheckLoopback(good), IsOk()) << good;
  }
  for (const char* bad : {"0.0.0.0:1", "10.0.0.1:1", "example.com:1", "[::]:1", "127.0.0.1.x:1"}) {
    EXPECT_THAT(CheckLoopback(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("until TLS exists")))
        << bad;
  }
  for (const char* bad : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_THAT(CheckLoopback(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no address")))
        << bad;
  }
}

}  // namespace
}  // namespace muster
