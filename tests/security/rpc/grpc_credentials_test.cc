#include "security/rpc/grpc_credentials.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cstdlib>
#include <filesystem>

#include "proto/control.grpc.pb.h"
#include "proto/rpc/grpc_status.h"
#include "security/certificate.h"
#include "security/certificate_authority.h"
#include "security/tls_context.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

namespace asio = boost::asio;
using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using std::chrono::hours;
using ::testing::HasSubstr;

/// Answers each Hello with who the caller is.
class Greeter final : public v1::WorkerService::Service {
 public:
  explicit Greeter(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest*,
                     v1::HelloResponse* response) override {
    const absl::StatusOr<Identity> peer = PeerIdentity(*context->auth_context());
    response->set_job(peer.ok() ? IdentityUri(*peer) : std::string(Message(peer.status())));
    return grpc::Status::OK;
  }
  int port() const { return port_; }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Greeting {
  grpc::Status status;
  std::string caller;
};

Greeting Greet(int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
               const grpc::ChannelArguments& arguments) {
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateCustomChannel("ipv4:127.0.0.1:" + std::to_string(port), credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN)));
  v1::HelloResponse response;
  Greeting greeting;
  greeting.status = stub->Hello(&context, v1::HelloRequest(), &response);
  greeting.caller = response.job();
  return greeting;
}

/// What a person is told of a call that failed.
std::string ForPeople(const grpc::Status& status) {
  return std::string(Message(FromGrpcStatus(status, {.name = "the master"})));
}

/// What an OpenSSL client sees.
struct Seen {
  std::string error;
  std::string serial;  // of the server's certificate
};

class GrpcCredentialsTest : public ::testing::Test {
 protected:
  std::string Directory(const std::string& name, int days = 0) {
    const std::string path = dir_.File(name);
    EXPECT_THAT(EnsureCertificates({.directory = path, .job_id = "ja", .hosts = {}},
                                   clock_.Wall() - days * hours(24)),
                IsOk());
    return path;
  }
  std::shared_ptr<grpc::ServerCredentials> ServerFiles(const std::string& directory) {
    auto made = MakeGrpcServerCredentials({.files = CredentialFilesOf(directory, Role::kMaster),
                                           .ours = {"ja", Role::kMaster},
                                           .refresh = std::chrono::seconds(1)},
                                          clock_.Wall());
    EXPECT_THAT(made.status(), IsOk());
    return *made;
  }
  Greeting GreetAs(int port, const std::string& directory, Role role, Role server = Role::kMaster) {
    grpc::ChannelArguments arguments;
    const auto made =
        MakeGrpcChannelCredentials({.files = CredentialFilesOf(directory, role), .ours = {}},
                                   server, clock_.Wall(), &arguments);
    EXPECT_THAT(made.status(), IsOk());
    return Greet(port, *made, arguments);
  }
  /// Connects with OpenSSL, as a worker with the files of `directory`.
  Seen Look(int port, const std::string& directory, asio::ssl::context::method method) {
    asio::io_context io;
    asio::ssl::context context(method);
    context.use_certificate_file(directory + "/worker.crt", asio::ssl::context::pem);
    context.use_private_key_file(directory + "/worker.key", asio::ssl::context::pem);
    asio::ssl::stream<asio::ip::tcp::socket> stream(io, context);
    SSL_set_alpn_protos(stream.native_handle(), reinterpret_cast<const unsigned char*>("\x02h2"),
                        3);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)});
    boost::system::error_code error;
    char byte = 0;
    stream.handshake(asio::ssl::stream_base::client, error);
    if (!error) asio::read(stream, asio::buffer(&byte, 1), error);  // of the server's settings
    Seen seen;
    if (error) seen.error = TlsErrorText(error, stream.native_handle());
    const security::Certificate peer(SSL_get1_peer_certificate(stream.native_handle()));
    if (peer != nullptr) {
      const ASN1_INTEGER* serial = X509_get0_serialNumber(peer.get());
      seen.serial.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
                         static_cast<size_t>(ASN1_STRING_length(serial)));
    }
    return seen;
  }

  TempDir dir_;
  SystemClock clock_;
};

TEST_F(GrpcCredentialsTest, TheServerLearnsWhoCalls) {
  const std::string directory = Directory("a");
  const Greeter master(ServerFiles(directory));
  for (const Role role : {Role::kWorker, Role::kServer, Role::kOperator}) {
    const Greeting greeting = GreetAs(master.port(), directory, role);
    EXPECT_TRUE(greeting.status.ok()) << greeting.status.error_message();
    EXPECT_EQ(greeting.caller, IdentityUri({"ja", role, std::string(RoleWord(role))}));
  }
}

TEST_F(GrpcCredentialsTest, AServerOfAnotherRoleIsNotCalled) {
  const std::string directory = Directory("a");
  const Greeter master(ServerFiles(directory));
  const Greeting greeting = GreetAs(master.port(), directory, Role::kWorker, Role::kScaler);
  EXPECT_EQ(greeting.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(ForPeople(greeting.status), HasSubstr("shows a certificate of another job or role"));
  EXPECT_EQ(greeting.caller, "");
}

TEST_F(GrpcCredentialsTest, AnotherAuthorityIsRefused) {
  const Greeter master(ServerFiles(Directory("a")));
  const Greeting greeting = GreetAs(master.port(), Directory("b"), Role::kWorker);
  EXPECT_EQ(greeting.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(ForPeople(greeting.status), HasSubstr("another authority than the job's"));
  // Nor does a client get in that does not ask who the master is.
  EXPECT_NE(Look(master.port(), dir_.File("b"), asio::ssl::context::tls_client).error, "");
  EXPECT_EQ(Look(master.port(), dir_.File("a"), asio::ssl::context::tls_client).error, "");
}

TEST_F(GrpcCredentialsTest, AnExpiredCertificateIsRefused) {
  const std::string directory = Directory("a");
  const Greeter master(ServerFiles(directory));
  std::filesystem::remove(directory + "/worker.crt");
  EXPECT_THAT(EnsureCertificates({.directory = directory, .job_id = "ja", .hosts = {}},
                                 clock_.Wall() - 100 * hours(24)),
              IsOk());
  grpc::ChannelArguments arguments;
  EXPECT_THAT(
      MakeGrpcChannelCredentials({.files = CredentialFilesOf(directory, Role::kWorker), .ours = {}},
                                 Role::kMaster, clock_.Wall(), &arguments)
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("expired at")));
  EXPECT_NE(Look(master.port(), directory, asio::ssl::context::tls_client).error, "");
  EXPECT_THAT(
      EnsureCertificates({.directory = directory, .job_id = "ja", .hosts = {}}, clock_.Wall()),
      IsOk());
  EXPECT_EQ(Look(master.port(), directory, asio::ssl::context::tls_client).error, "");
}

TEST_F(GrpcCredentialsTest, Tls12IsRefused) {
  const std::string directory = Directory("a");
  const Greeter master(ServerFiles(directory));
  EXPECT_EQ(Look(master.port(), directory, asio::ssl::context::tlsv13_client).error, "");
  EXPECT_NE(Look(master.port(), directory, asio::ssl::context::tlsv12_client).error, "");
  EXPECT_EQ(std::getenv("GRPC_SSL_CIPHER_SUITES"), nullptr) << "trainers would inherit it";
}

TEST_F(GrpcCredentialsTest, PlainTextAndTlsDoNotMix) {
  const std::string directory = Directory("a");
  const Greeter master(ServerFiles(directory));
  EXPECT_EQ(Greet(master.port(), grpc::InsecureChannelCredentials(), {}).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  const Greeter plain(grpc::InsecureServerCredentials());
  EXPECT_THAT(ForPeople(GreetAs(plain.port(), directory, Role::kWorker).status),
              HasSubstr("speaks plain text"));
}

TEST_F(GrpcCredentialsTest, ARunningServerTakesRenewedFiles) {
  const std::string directory = Directory("a", 61);
  const Greeter master(ServerFiles(directory));
  const Seen before = Look(master.port(), directory, asio::ssl::context::tls_client);
  EXPECT_EQ(before.error, "");
  Directory("a");
  Seen after = before;
  while (after.serial == before.serial) {
    after = Look(master.port(), directory, asio::ssl::context::tls_client);
    ASSERT_EQ(after.error, "") << "at no moment is the server unusable";
  }
  EXPECT_TRUE(GreetAs(master.port(), directory, Role::kWorker).status.ok());
}

TEST_F(GrpcCredentialsTest, FilesOfAnotherRoleAreRefused) {
  const std::string directory = Directory("a");
  EXPECT_THAT(MakeGrpcServerCredentials({.files = CredentialFilesOf(directory, Role::kWorker),
                                         .ours = {"ja", Role::kMaster}},
                                        clock_.Wall())
                  .status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is one of role worker, but master is needed")));
}

}  // namespace
}  // namespace muster
