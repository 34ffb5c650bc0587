// Callers of a master whose port is TLS.
#include "admin/admin_client.h"
#include "master/service/callers.h"
#include "security/certificate_authority.h"
#include "security/join_token.h"
#include "security/rpc/grpc_credentials.h"
#include "tests/master/service/master_server_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

class MasterTlsTest : public MasterServerTest {
 protected:
  void SetUp() override {
    EXPECT_THAT(
        EnsureCertificates({.directory = folder_.File("tls"), .job_id = "memory", .hosts = {}},
                           system_.Wall()),
        IsOk());
    options_.tls = CredentialFilesOf(folder_.File("tls"), Role::kMaster);
    // The certificates are valid now, and not at the time of the fixture's clock.
    MUSTER_ASSERT_OK_AND_ASSIGN(server_, MasterServer::Start(options_, &journal_, &system_));
    address_ = "127.0.0.1:" + std::to_string(server_->port());
  }
  // Before the clock is gone.
  void TearDown() override { server_.reset(); }
  /// The stubs' calls come from a process with this role's certificate.
  void CallAs(Role role) {
    grpc::ChannelArguments arguments;
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const auto credentials,
        MakeGrpcChannelCredentials(
            {.files = CredentialFilesOf(folder_.File("tls"), role), .ours = {}}, Role::kMaster,
            system_.Wall(), &arguments));
    UseChannel(grpc::CreateCustomChannel(address_, credentials, arguments));
  }
  void UseChannel(std::shared_ptr<grpc::Channel> channel) {
    worker_ = v1::WorkerService::NewStub(channel);
    servers_ = v1::ServerService::NewStub(channel);
    admin_ = v1::AdminService::NewStub(channel);
  }
  grpc::Status Register() {
    v1::RegisterServerRequest registration;
    registration.set_name("ps-0");
    registration.set_nonce(5);
    registration.set_version(kVersion);
    v1::RegisterServerReply registered;
    return Call(servers_.get(), &Servers::Register, registration, &registered);
  }
  grpc::Status Ask() {
    v1::JobStatus status;
    return Call(admin_.get(), &Admin::GetStatus, v1::GetStatusRequest(), &status);
  }

  const SystemClock system_;
  std::string address_;
};

TEST_F(MasterTlsTest, TheRoleOfACertificateDecidesWhatItsOwnerMayCall) {
  for (const Role role : kRoles) {
    CallAs(role);
    const auto check = [&](MasterService service, const grpc::Status& status) {
      if (MayCall(role, service)) {
        EXPECT_TRUE(status.ok()) << RoleWord(role) << ": " << status.error_message();
      } else {
        EXPECT_THAT(status, RpcIs(grpc::StatusCode::PERMISSION_DENIED, HasSubstr(RoleWord(role))));
      }
    };
    check(MasterService::kWorkers, Hello(kCompatibleVersion));
    check(MasterService::kServers, Register());
    check(MasterService::kAdmin, Ask());
  }
}

TEST_F(MasterTlsTest, LaterCallsAreChecked) {
  CallAs(Role::kServer);
  v1::WorkerExchangeReply granted;
  EXPECT_THAT(Exchange(v1::WorkerExchangeRequest(), &granted),
              RpcIs(grpc::StatusCode::PERMISSION_DENIED, HasSubstr("for workers")));
  CallAs(Role::kWorker);
  v1::ServerExchangeReply commands;
  EXPECT_THAT(Call(servers_.get(), &Servers::Exchange, beat_, &commands),
              RpcIs(grpc::StatusCode::PERMISSION_DENIED, HasSubstr("for parameter servers")));
}

TEST_F(MasterTlsTest, ACertificateDoesNotReplaceTheToken) {
  CallAs(Role::kOperator);
  token_ = "";
  EXPECT_THAT(Ask(), RpcIs(grpc::StatusCode::UNAUTHENTICATED, HasSubstr("no token")));
}

TEST_F(MasterTlsTest, AMachineThatJoinsGivesNoOrders) {
  CallAs(Role::kWorker);
  token_ = JoinToken(LoadToken(options_.token_file).value(), Role::kWorker);
  const auto refused = RpcIs(grpc::StatusCode::PERMISSION_DENIED, HasSubstr("nothing else"));
  const auto join = [this](const std::string& role) {
    v1::JoinNodeRequest request;
    request.set_role(role);
    request.set_name(role == "ps" ? "ps-1" : "worker-b");
    request.set_host("b");
    v1::JoinNodeResponse place;
    return Call(admin_.get(), &Admin::JoinNode, request, &place);
  };
  EXPECT_TRUE(Ask().ok());
  EXPECT_TRUE(join("worker").ok());
  EXPECT_THAT(join("ps"), refused);
  v1::CancelResponse cancelled;
  EXPECT_THAT(Call(admin_.get(), &Admin::Cancel, v1::CancelRequest(), &cancelled), refused);
  v1::DrainResponse drained;
  EXPECT_THAT(Call(admin_.get(), &Admin::Drain, v1::DrainRequest(), &drained), refused);
  v1::DrainNodeRequest node;
  node.set_node("ps-0");
  v1::DrainNodeResponse node_drained;
  EXPECT_THAT(Call(admin_.get(), &Admin::DrainNode, node, &node_drained), refused);
  v1::GetManifestResponse manifest;
  EXPECT_THAT(Call(admin_.get(), &Admin::GetManifest, v1::GetManifestRequest(), &manifest),
              refused);
  v1::ReportNodeRequest report;
  report.set_node("ps-0");
  report.set_role("ps");
  report.set_what("started");
  report.set_start(1);
  v1::ReportNodeResponse reported;
  EXPECT_THAT(Call(admin_.get(), &Admin::ReportNode, report, &reported), refused);
  // The token of servers does not help whoever has the certificate of workers.
  token_ = JoinToken(LoadToken(options_.token_file).value(), Role::kServer);
  EXPECT_THAT(Ask(), RpcIs(grpc::StatusCode::PERMISSION_DENIED, HasSubstr("role worker")));
}

TEST_F(MasterTlsTest, PlainTextIsNotAnswered) {
  UseChannel(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Ask().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(MasterTlsTest, TheAdminClientShowsItsCertificate) {
  const auto ask = [this](const std::string& directory, Role role) {
    return MakeAdminClient({.address = address_,
                            .job = {"memory", "flights"},
                            .token_file = options_.token_file,
                            .tls = CredentialFilesOf(directory, role)},
                           std::chrono::seconds(20), WhenAway::kFail)
        ->GetStatus()
        .status();
  };
  EXPECT_THAT(ask(folder_.File("tls"), Role::kOperator), IsOk());
  EXPECT_THAT(ask(folder_.File("tls"), Role::kWorker),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("role worker")));
  EXPECT_THAT(ask(folder_.File("other"), Role::kOperator),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("other/ca.crt")));
}

TEST_F(MasterTlsTest, AMasterNeedsItsOwnCertificate) {
  options_.tls = CredentialFilesOf(folder_.File("tls"), Role::kWorker);
  testing::MemoryJournal journal(DurableState{}, "memory");
  EXPECT_THAT(MasterServer::Start(options_, &journal, &system_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("master is needed")));
}

}  // namespace
}  // namespace muster
