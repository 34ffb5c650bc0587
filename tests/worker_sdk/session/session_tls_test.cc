#include "worker_sdk/session/session_tls.h"

#include <fstream>

#include "tests/net/tls_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster::internal {
namespace {

using muster::testing::StatusIs;
using net::tls_test::Certificates;
using ::testing::AllOf;
using ::testing::HasSubstr;

SessionOptions OptionsOf(const Certificates& certificates, Role role = Role::kWorker) {
  const CredentialFiles files = certificates.Files(role);
  SessionOptions options;
  options.ca_file = files.ca;
  options.certificate_file = files.certificate;
  options.key_file = files.key;
  return options;
}

TEST(SessionTlsTest, WithoutFilesConnectionsArePlainText) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const SessionTls tls, MakeSessionTls({}));
  EXPECT_FALSE(tls.master || tls.servers);
}

TEST(SessionTlsTest, SomeFilesAreAnError) {
  SessionOptions options = OptionsOf(Certificates());
  options.key_file.clear();
  EXPECT_THAT(MakeSessionTls(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                                AllOf(HasSubstr("MUSTER_CERTIFICATE_FILE is set"),
                                                      HasSubstr("MUSTER_KEY_FILE is not"))));
}

TEST(SessionTlsTest, AnErrorNamesTheFile) {
  const Certificates certificates;
  SessionOptions options = OptionsOf(certificates);
  options.ca_file = certificates.directory() + "/missing.crt";
  EXPECT_THAT(MakeSessionTls(options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(options.ca_file)));
  EXPECT_THAT(MakeSessionTls(OptionsOf(certificates, Role::kScaler)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(certificates.Files(Role::kScaler).certificate)));
  options = OptionsOf(certificates);
  options.job_id = "id-2";
  EXPECT_THAT(MakeSessionTls(options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(options.certificate_file)));
}

TEST(SessionTlsTest, EachEndAcceptsOnlyItsServer) {
  const Certificates certificates;
  MUSTER_ASSERT_OK_AND_ASSIGN(const SessionTls tls, MakeSessionTls(OptionsOf(certificates)));
  const auto failure = [&](const net::TlsContextSource& source) {
    net::TlsEngine client(source().get(), net::TlsEngine::Side::kClient);
    net::TlsEngine server(certificates.Server().get(), net::TlsEngine::Side::kServer);
    for (int i = 0; i < 2; ++i) {
      client.Handshake();
      const auto hello = client.output();
      std::copy(hello.begin(), hello.end(), server.Room().begin());
      server.Received(hello.size());
      client.Sent(hello.size());
      server.Handshake();
      const auto answer = server.output();
      std::copy(answer.begin(), answer.end(), client.Room().begin());
      client.Received(answer.size());
      server.Sent(answer.size());
    }
    return std::string(client.failure());
  };
  EXPECT_EQ(failure(tls.servers), "");
  EXPECT_THAT(failure(tls.master), HasSubstr("has the role ps, but only master"));
}

}  // namespace
}  // namespace muster::internal
