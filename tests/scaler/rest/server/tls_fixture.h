#pragma once

#include <string>

#include "security/certificate_authority.h"
#include "tests/scaler/rest/server/rest_fixture.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler::rest::testing {

/// A server over the fake job whose port is TLS. Certificates are valid by the machine's clock.
class TlsFixture : public RestFixture {
 protected:
  // Before the clock is gone.
  void TearDown() override { server_.reset(); }
  /// Certificates of a job, made in a folder of this name.
  std::string Certificates(const std::string& name) {
    const std::string directory = folder_.File(name);
    EXPECT_THAT(
        EnsureCertificates(
            {.directory = directory, .job_id = "ja", .hosts = {{Role::kScaler, {"127.0.0.1"}}}},
            system_.Wall())
            .status(),
        muster::testing::IsOk());
    return directory;
  }
  void StartTlsServer(HttpServerOptions options = Options(), Role role = Role::kScaler) {
    options.tls = ServerTls{
        .files = CredentialFilesOf(Certificates("a"), role), .job_id = "ja", .clients = {}};
    server_.emplace(std::move(options), &job_, &system_);
    MUSTER_ASSERT_OK_AND_ASSIGN(port_, server_->Listen());
    server_->Start();
  }

  muster::testing::TempDir folder_;
  const SystemClock system_;
};

}  // namespace muster::scaler::rest::testing
