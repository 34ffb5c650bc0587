#include "security/tls_context.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <thread>

#include "security/certificate_authority.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

namespace asio = boost::asio;
using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Socket = asio::local::stream_protocol::socket;
using Stream = asio::ssl::stream<Socket>;
using std::chrono::hours;

/// OpenSSL compares certificates with the machine's time, and files are looked at by our clock.
class HalfClock final : public Clock {
 public:
  TimePoint Now() const override { return fake_.Now(); }
  WallTime Wall() const override { return real_.Wall(); }
  void Advance(std::chrono::nanoseconds by) { fake_.Advance(by); }

 private:
  testing::FakeClock fake_;
  SystemClock real_;
};

/// How a connection went at one end.
struct End {
  std::string error;  // empty: a byte went each way
  absl::StatusOr<Identity> peer = absl::UnknownError("no handshake");
};

End Talk(Stream* stream, asio::ssl::stream_base::handshake_type side) {
  End end;
  boost::system::error_code error;
  char byte = 'x';
  stream->handshake(side, error);
  if (!error) end.peer = PeerIdentity(stream->native_handle());
  // Under TLS 1.3 the client learns with its first read that the server refuses it. It does not
  // write before, because the server may have closed the connection by then.
  const auto read = [&] {
    if (!error) asio::read(*stream, asio::buffer(&byte, 1), error);
  };
  if (side == Stream::client) read();
  if (!error) asio::write(*stream, asio::buffer(&byte, 1), error);
  if (side == Stream::server) read();
  if (error) end.error = TlsErrorText(error, stream->native_handle());
  stream->next_layer().close(error);
  return end;
}

struct Ends {
  End server;
  End client;
};

Ends Connect(const TlsContext::Context& server, const TlsContext::Context& client) {
  asio::io_context io;
  Stream at_server(io, *server);
  Stream at_client(io, *client);
  asio::local::connect_pair(at_server.next_layer(), at_client.next_layer());
  Ends ends;
  std::thread thread([&] { ends.server = Talk(&at_server, Stream::server); });
  ends.client = Talk(&at_client, Stream::client);
  thread.join();
  return ends;
}

/// What the server says about a client that sends these bytes.
std::string AnswerTo(const TlsContext::Context& server, const std::string& bytes) {
  asio::io_context io;
  Stream at_server(io, *server);
  Socket client(io);
  asio::local::connect_pair(at_server.next_layer(), client);
  asio::write(client, asio::buffer(bytes));
  boost::system::error_code error;
  at_server.handshake(Stream::server, error);
  EXPECT_TRUE(error);
  return TlsErrorText(error, at_server.native_handle());
}

class TlsContextTest : public ::testing::Test {
 protected:
  static constexpr hours kDay{24};

  /// Makes the certificates of a job, as if `days` ago.
  std::string Directory(const std::string& name, const std::string& job_id, int days = 0) {
    const std::string path = dir_.File(name);
    EXPECT_THAT(EnsureCertificates({.directory = path, .job_id = job_id, .hosts = {}},
                                   clock_.Wall() - days * kDay),
                IsOk());
    return path;
  }
  std::unique_ptr<TlsContext> Server(const std::string& directory, Role role,
                                     std::vector<Role> clients, const std::string& job = "ja") {
    auto made = TlsContext::Make(
        ServerTls{CredentialFilesOf(directory, role), job, std::move(clients)}, &clock_);
    EXPECT_THAT(made.status(), IsOk());
    return *std::move(made);
  }
  std::unique_ptr<TlsContext> Client(const std::string& directory, Role role, Role server,
                                     const std::string& job = "ja") {
    auto made =
        TlsContext::Make(ClientTls{CredentialFilesOf(directory, role), job, server}, &clock_);
    EXPECT_THAT(made.status(), IsOk());
    return *std::move(made);
  }
  /// A server of role ps for workers, and a client of some role.
  Ends WorkerServer(const std::string& directory, Role client, Role wanted = Role::kServer) {
    return Connect(Server(directory, Role::kServer, {Role::kWorker})->Get(),
                   Client(directory, client, wanted)->Get());
  }

  TempDir dir_;
  HalfClock clock_;
};

TEST_F(TlsContextTest, BothEndsLearnWhoTheOtherIs) {
  const Ends ends = WorkerServer(Directory("a", "ja"), Role::kWorker);
  EXPECT_EQ(ends.server.error, "");
  EXPECT_EQ(ends.client.error, "");
  MUSTER_ASSERT_OK_AND_ASSIGN(const Identity client, ends.server.peer);
  EXPECT_EQ(client, (Identity{"ja", Role::kWorker, "worker"}));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Identity server, ends.client.peer);
  EXPECT_EQ(server, (Identity{"ja", Role::kServer, "ps"}));
}

TEST_F(TlsContextTest, AServerRefusesRolesThatItDoesNotServe) {
  const Ends ends = WorkerServer(Directory("a", "ja"), Role::kOperator);
  EXPECT_THAT(ends.server.error,
              HasSubstr("muster://ja/operator/operator, has the role operator, but only worker"));
  EXPECT_THAT(ends.client.error, HasSubstr("the peer refuses our certificate"));
}

TEST_F(TlsContextTest, AClientRefusesAServerOfAnotherRole) {
  const Ends ends = WorkerServer(Directory("a", "ja"), Role::kWorker, Role::kMaster);
  EXPECT_THAT(ends.client.error, HasSubstr("has the role ps, but only master"));
  EXPECT_THAT(ends.server.error, HasSubstr("the peer refuses our certificate"));
}

TEST_F(TlsContextTest, AnotherAuthorityIsRefusedAtBothEnds) {
  const std::string ours = Directory("a", "ja");
  const std::string theirs = Directory("b", "ja");
  const auto server = Server(ours, Role::kServer, {Role::kWorker});
  Ends ends = Connect(server->Get(), Client(theirs, Role::kWorker, Role::kServer)->Get());
  EXPECT_THAT(ends.client.error, HasSubstr("signed by another authority than ours"));
  EXPECT_THAT(ends.server.error, HasSubstr("does not know the authority that signed our"));
}

TEST_F(TlsContextTest, AClientOfAnotherAuthorityThatTrustsOursIsRefused) {
  const std::string ours = Directory("a", "ja");
  const std::string theirs = Directory("b", "jb");
  // A client that does not check the server at all.
  auto client = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  client->use_certificate_file(theirs + "/worker.crt", asio::ssl::context::pem);
  client->use_private_key_file(theirs + "/worker.key", asio::ssl::context::pem);
  const auto server = Server(ours, Role::kServer, {Role::kWorker});
  const Ends ends = Connect(server->Get(), client);
  EXPECT_THAT(ends.server.error, AllOf(HasSubstr("muster://jb/worker/worker"),
                                       HasSubstr("signed by another authority than ours")));
  EXPECT_THAT(ends.client.error, HasSubstr("does not know the authority"));
}

TEST_F(TlsContextTest, TheSameAuthorityForAnotherJobIsRefused) {
  // As with certificates of an organisation, one authority for all jobs.
  const std::string ours = Directory("a", "ja");
  std::filesystem::create_directory(dir_.File("b"));
  const auto server = Server(ours, Role::kServer, {Role::kWorker});
  const auto client = TlsContext::Make(
      ClientTls{CredentialFiles{.ca = ours + "/ca.crt", .certificate = {}, .key = {}}, "jb",
                Role::kServer},
      &clock_);
  ASSERT_THAT(client.status(), IsOk());
  const Ends ends = Connect(server->Get(), (*client)->Get());
  EXPECT_THAT(ends.client.error,
              HasSubstr("muster://ja/ps/ps, belongs to another job than ours, jb"));
}

TEST_F(TlsContextTest, AClientWithoutACertificate) {
  const std::string directory = Directory("a", "ja");
  const ClientTls options{.files = {.ca = directory + "/ca.crt", .certificate = {}, .key = {}},
                          .job_id = "ja",
                          .server = Role::kScaler};
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto client, TlsContext::Make(options, &clock_));
  const Ends open = Connect(Server(directory, Role::kScaler, {})->Get(), client->Get());
  EXPECT_EQ(open.server.error, "");
  EXPECT_EQ(open.client.error, "");
  EXPECT_THAT(open.server.peer,
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("showed no certificate")));
  const Ends closed =
      Connect(Server(directory, Role::kScaler, {Role::kOperator})->Get(), client->Get());
  EXPECT_THAT(closed.server.error, HasSubstr("the client showed no certificate"));
  EXPECT_THAT(closed.client.error, HasSubstr("the client showed no certificate"));
}

TEST_F(TlsContextTest, AnExpiredCertificateIsRefused) {
  const std::string directory = Directory("a", "ja");
  const auto server = Server(directory, Role::kServer, {Role::kWorker});
  // Our own files are checked when they are read, so OpenSSL has to be told to use expired ones.
  const CertificateOptions old{.directory = directory, .job_id = "ja", .hosts = {}};
  for (const char* file : {"/worker.crt", "/worker.key"}) {
    std::filesystem::remove(directory + file);
  }
  EXPECT_THAT(EnsureCertificates(old, clock_.Wall() - 100 * kDay), IsOk());
  EXPECT_THAT(
      TlsContext::Make(ClientTls{CredentialFilesOf(directory, Role::kWorker), "ja", Role::kServer},
                       &clock_)
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("expired at")));
  auto client = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  client->use_certificate_file(directory + "/worker.crt", asio::ssl::context::pem);
  client->use_private_key_file(directory + "/worker.key", asio::ssl::context::pem);
  const Ends ends = Connect(server->Get(), client);
  EXPECT_THAT(ends.server.error,
              AllOf(HasSubstr("muster://ja/worker/worker, expired at"), HasSubstr("renew it")));
  EXPECT_THAT(ends.client.error, HasSubstr("our certificate has expired"));
}

TEST_F(TlsContextTest, Tls12IsRefused) {
  const std::string directory = Directory("a", "ja");
  const auto server = Server(directory, Role::kServer, {Role::kWorker});
  auto client = std::make_shared<asio::ssl::context>(asio::ssl::context::tlsv12_client);
  client->use_certificate_file(directory + "/worker.crt", asio::ssl::context::pem);
  client->use_private_key_file(directory + "/worker.key", asio::ssl::context::pem);
  const Ends ends = Connect(server->Get(), client);
  EXPECT_THAT(ends.server.error, HasSubstr("no TLS 1.3"));
  EXPECT_THAT(ends.client.error, HasSubstr("no TLS 1.3"));
}

TEST_F(TlsContextTest, PlainTextIsRecognised) {
  const auto server = Server(Directory("a", "ja"), Role::kServer, {Role::kWorker});
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("MUST\x01\x00\x00\x00\x10\x00\x00\x00", 12)}) {
    EXPECT_THAT(AnswerTo(server->Get(), bytes), HasSubstr("speaks plain text")) << bytes;
  }
}

TEST_F(TlsContextTest, RenewedFilesAreReadWithoutARestart) {
  const std::string directory = Directory("a", "ja", 61);
  const auto server = Server(directory, Role::kServer, {Role::kWorker});
  const TlsContext::Context before = server->Get();
  Directory("a", "ja");
  EXPECT_EQ(server->Get(), before) << "it looks once a second";
  clock_.Advance(std::chrono::seconds(1));
  const TlsContext::Context after = server->Get();
  EXPECT_NE(after, before);
  EXPECT_EQ(Connect(after, Client(directory, Role::kWorker, Role::kServer)->Get()).client.error,
            "");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(server->Get(), after) << "nothing has changed since";
}

TEST_F(TlsContextTest, FilesThatCannotBeUsedDoNotReplaceGoodOnes) {
  const std::string directory = Directory("a", "ja");
  const auto server = Server(directory, Role::kServer, {Role::kWorker});
  const auto client = Client(directory, Role::kWorker, Role::kServer);
  const TlsContext::Context before = server->Get();
  std::filesystem::copy_file(directory + "/worker.crt", directory + "/ps.crt",
                             std::filesystem::copy_options::overwrite_existing);
  clock_.Advance(std::chrono::seconds(1));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(server->Get(), before);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(server->Get(), before);
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t said = log.find("the old certificates stay in use");
  EXPECT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("the old certificates stay in use", said + 1), std::string::npos) << log;
  EXPECT_EQ(Connect(before, client->Get()).client.error, "");
}

TEST_F(TlsContextTest, FilesOfAnotherJobAreNotUsed) {
  const std::string directory = Directory("a", "ja");
  EXPECT_THAT(
      TlsContext::Make(ServerTls{CredentialFilesOf(directory, Role::kServer), "jb", {}}, &clock_)
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("belongs to job ja")));
}

}  // namespace
}  // namespace muster
