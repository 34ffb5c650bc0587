// Which callers a master accepts, and the results of refused calls.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "tests/master/service/master_server_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST_F(MasterServerTest, TellsItsJobAndRefusesWhoIsOfNoneOrOfAnother) {
  Start();
  job_ = {};
  ASSERT_TRUE(Hello(kCompatibleVersion).ok());
  EXPECT_EQ(hello_.job_id(), "memory");
  v1::RegisterServerRequest registration;
  registration.set_name("ps-0");
  registration.set_nonce(5);
  registration.set_version(kVersion);
  v1::RegisterServerReply registered;
  ASSERT_TRUE(Call(servers_.get(), &Servers::Register, registration, &registered).ok());
  EXPECT_EQ(registered.job_id(), "memory");
  EXPECT_EQ(Status().state(), static_cast<uint32_t>(JobState::kRunning));

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
  v1::WorkerExchangeRequest malformed;
  malformed.add_held()->set_phase(9);
  EXPECT_THAT(Exchange(malformed, &granted), foreign) << "whatever it says";
  EXPECT_THAT(Hello(kCompatibleVersion, "worker-7"), foreign);
  EXPECT_THAT(Hello("9.9", "worker-7"), foreign) << "whatever its version";
  registration.set_nonce(6);
  EXPECT_THAT(Call(servers_.get(), &Servers::Register, registration, &registered), foreign);
  v1::CancelResponse cancelled;
  EXPECT_THAT(Call(admin_.get(), &Admin::Cancel, v1::CancelRequest(), &cancelled), foreign);
  v1::JobStatus status;
  EXPECT_THAT(Call(admin_.get(), &Admin::GetStatus, v1::GetStatusRequest(), &status), foreign);

  job_.id = "memory";
  status = Status();
  EXPECT_EQ(status.state(), static_cast<uint32_t>(JobState::kRunning));
  EXPECT_EQ(status.nodes_size(), 2) << "worker-0 and ps-0";
  EXPECT_EQ(status.datasets(0).epochs(0).shards().leased(), 0u);
  v1::GetManifestResponse manifest;
  ASSERT_TRUE(Call(admin_.get(), &Admin::GetManifest, v1::GetManifestRequest(), &manifest).ok());
  EXPECT_EQ(manifest.tables_size(), 0);
  later_calls_are(::testing::Property(&grpc::Status::ok, true));
}

TEST_F(MasterServerTest, OtherVersionsAreRefusedWithBoth) {
  Start();
  EXPECT_THAT(Hello("0.1"), RpcIs(grpc::StatusCode::FAILED_PRECONDITION,
                                  AllOf(HasSubstr("'0.1'"), HasSubstr(kVersion))));
  const std::string ours(kCompatibleVersion);
  EXPECT_THAT(Hello(ours + "0"), RpcIs(grpc::StatusCode::FAILED_PRECONDITION, HasSubstr(ours)));
  EXPECT_TRUE(Hello(ours + ".9").ok());
}

TEST_F(MasterServerTest, BadInputIsRefusedAndNamed) {
  Start();
  EXPECT_THAT(Hello(kCompatibleVersion, "no spaces"),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("worker: a node's name")));
  EXPECT_THAT(Hello(kCompatibleVersion, std::string(65, 'a')),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("65 bytes")));
  v1::HelloRequest nobody;
  nobody.set_worker("worker-0");
  nobody.set_sdk_version(std::string(kCompatibleVersion));
  EXPECT_THAT(Call(worker_.get(), &Worker::Hello, nobody, &hello_),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("incarnation: 0")));
  v1::WorkerExchangeReply reply;
  v1::WorkerExchangeRequest unnamed;
  unnamed.set_worker("no spaces");
  EXPECT_THAT(Exchange(unnamed, &reply),
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("worker: a node's name")));
  v1::WorkerExchangeRequest many;
  for (int i = 0; i < 100'001; ++i) many.add_held();
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
              RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("has start 0")));
  EXPECT_EQ(Status().state(), static_cast<uint32_t>(JobState::kRunning))
      << "none of it harmed the job";
}

TEST_F(MasterServerTest, ANodeWithoutAPlaceIsWaitingUntilItStarts) {
  Start();
  v1::ReportNodeRequest report;
  v1::ReportNodeResponse reported;
  report.set_node("worker-7");
  report.set_role("worker");
  report.set_start(1);
  report.set_what("held");
  report.set_cause("tired");
  EXPECT_THAT(
      Call(admin_.get(), &Admin::ReportNode, report, &reported),
      RpcIs(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("'tired' is no cause of 'held'")));
  report.set_cause("unschedulable");
  report.set_text("0/3 nodes are available");
  EXPECT_TRUE(Call(admin_.get(), &Admin::ReportNode, report, &reported).ok());
  const auto worker = [this] {
    const v1::JobStatus status = Status();
    const auto found = std::ranges::find(status.nodes(), "worker-7", &v1::NodeStatus::name);
    return found == status.nodes().end() ? v1::NodeStatus() : *found;
  };
  EXPECT_EQ(worker().state(), "waiting");
  EXPECT_EQ(worker().wait(), "unschedulable");
  EXPECT_EQ(worker().wait_reason(), "0/3 nodes are available");
  report.set_what("started");
  report.set_cause("");
  EXPECT_TRUE(Call(admin_.get(), &Admin::ReportNode, report, &reported).ok());
  EXPECT_EQ(worker().state(), "starting");
  EXPECT_EQ(worker().wait(), "none");
  report.set_what("resized");
  report.set_cause("deferred");
  EXPECT_TRUE(Call(admin_.get(), &Admin::ReportNode, report, &reported).ok());
  report.set_what("exited");
  report.set_cause("evicted");
  EXPECT_TRUE(Call(admin_.get(), &Admin::ReportNode, report, &reported).ok());
  v1::ListEventsResponse events;
  EXPECT_TRUE(Call(admin_.get(), &Admin::ListEvents, v1::ListEventsRequest(), &events).ok());
  std::vector<std::string> kinds;
  for (const v1::MasterEvent& event : events.events()) {
    if (event.node() == "worker-7") kinds.push_back(event.kind());
  }
  EXPECT_THAT(kinds, ::testing::ElementsAre("node-unschedulable", "node-started",
                                            "node-resize-deferred", "node-evicted"));
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
  all_refused("has no token");
  token_ = std::string(64, '0');
  all_refused("has a wrong token");
  token_.reset();
  EXPECT_EQ(Status().state(), static_cast<uint32_t>(JobState::kRunning));
  EXPECT_EQ(Status().nodes_size(), 0) << "a forged report is not believed";
  EXPECT_TRUE(Hello(kCompatibleVersion).ok()) << "a worker has the job's id, and no token";
}

TEST_F(MasterServerTest, ANewTokenReplacesTheOldOneAtOnce) {
  Start();
  const std::string former = LoadToken(options_.token_file).value();
  RemoveFile(options_.token_file);
  token_ = former;
  v1::JobStatus status;
  EXPECT_THAT(Call(admin_.get(), &Admin::GetStatus, v1::GetStatusRequest(), &status),
              RpcIs(grpc::StatusCode::UNAUTHENTICATED, HasSubstr("has a wrong token")));
  token_.reset();
  EXPECT_NE(LoadToken(options_.token_file).value(), former);
  EXPECT_EQ(Status().state(), static_cast<uint32_t>(JobState::kRunning));
}

TEST_F(MasterServerTest, ATokenThatOthersMayHaveReadIsNoToken) {
  ASSERT_THAT(WriteFileAtomically(options_.token_file, std::string(64, 'a')), IsOk());
  ASSERT_EQ(::chmod(options_.token_file.c_str(), 0644), 0);
  Start();
  EXPECT_NE(LoadToken(options_.token_file).value(), std::string(64, 'a'));
  EXPECT_EQ(Status().state(), static_cast<uint32_t>(JobState::kRunning));
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
  EXPECT_TRUE(Hello(kCompatibleVersion).ok());
  for (const int fd : silent) ::close(fd);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace muster
