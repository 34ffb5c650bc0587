#include "cli/run/run_security.h"

#include <filesystem>

#include "base/file.h"
#include "job/in_cluster.h"
#include "security/certificate.h"
#include "security/certificate_authority.h"
#include "security/credentials.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using ::testing::UnorderedElementsAre;

class RunSecurityTest : public ::testing::Test {
 protected:
  RunSecurityTest() { job_.security.tls = TlsUse::kAlways; }
  /// Certificates as a user would give them.
  std::string Given(const std::string& job_id) {
    EXPECT_THAT(EnsureCertificates(
                    {.directory = folder_.File("given"), .job_id = job_id, .hosts = {}}, kNow),
                IsOk());
    return folder_.File("given");
  }

  static constexpr WallTime kNow = std::chrono::hours(24 * 365 * 50);
  testing::TempDir folder_;
  const StateDirectory state_{folder_.path()};
  JobSpec job_;
};

TEST_F(RunSecurityTest, MakesCertificatesOnlyForTls) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string made,
                              PrepareCertificates(job_, state_, "0a1b", kNow));
  EXPECT_EQ(made, folder_.File("tls"));
  EXPECT_THAT(LoadCredentials(CredentialFilesOf(made, Role::kScaler), {"0a1b", Role::kScaler}, kNow)
                  .status(),
              IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string pem, ReadFile(made + "/scaler.crt", 1 << 20));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto certificate, security::ParseCertificate(pem));
  EXPECT_TRUE(security::CoversHost(certificate.get(), "127.0.0.1")) << "for browsers";
  EXPECT_TRUE(security::CoversHost(certificate.get(), "localhost"));
  std::filesystem::remove_all(made);
  job_.security.tls = TlsUse::kAuto;
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string none,
                              PrepareCertificates(job_, state_, "0a1b", kNow));
  EXPECT_EQ(none, "");
  EXPECT_FALSE(std::filesystem::exists(folder_.File("tls")));
}

TEST_F(RunSecurityTest, ANewNameOfRestRenewsTheScalersCertificateAlone) {
  const auto prepare = [&] {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string made,
                                PrepareCertificates(job_, state_, "0a1b", kNow));
  };
  const auto pem = [&](const std::string& name) {
    return ReadFile(folder_.File("tls/" + name), 1 << 20).value_or("");
  };
  const auto covers = [&](const char* host) {
    const auto certificate = security::ParseCertificate(pem("scaler.crt"));
    return certificate.ok() && security::CoversHost(certificate->get(), host);
  };
  job_.scaler.advertise = "one.example.org";
  prepare();
  EXPECT_TRUE(covers("one.example.org"));
  EXPECT_FALSE(covers("two.example.org"));
  const std::string scaler = pem("scaler.crt");
  const std::string key = pem("scaler.key");
  const std::string master = pem("master.crt");
  prepare();
  EXPECT_EQ(pem("scaler.crt"), scaler) << "nothing has changed";
  job_.scaler.advertise = "two.example.org";
  prepare();
  EXPECT_TRUE(covers("two.example.org"));
  EXPECT_EQ(pem("scaler.key"), key);
  EXPECT_EQ(pem("master.crt"), master);
}

TEST_F(RunSecurityTest, ANewJobTakesTheIdOfTheUsersCertificates) {
  EXPECT_EQ(FreshJobId(job_, "drawn", kNow).value_or("error"), "drawn");
  job_.security.certificates = Given("given-id");
  EXPECT_EQ(FreshJobId(job_, "drawn", kNow).value_or("error"), "given-id");
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string used,
                              PrepareCertificates(job_, state_, "given-id", kNow));
  EXPECT_EQ(used, folder_.File("given"));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("tls")));
  job_.security.tls = TlsUse::kAuto;
  EXPECT_EQ(FreshJobId(job_, "drawn", kNow).value_or("error"), "drawn");
}

TEST_F(RunSecurityTest, TheUsersCertificatesAreAllChecked) {
  job_.security.certificates = Given("given-id");
  EXPECT_THAT(PrepareCertificates(job_, state_, "0a1b", kNow).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("spec.security.certificates"), HasSubstr("given-id"))));
  std::filesystem::remove(folder_.File("given/worker.key"));
  EXPECT_THAT(PrepareCertificates(job_, state_, "given-id", kNow).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker.key")));
  std::filesystem::remove(folder_.File("given/master.crt"));
  EXPECT_THAT(FreshJobId(job_, "drawn", kNow).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("master.crt")));
}

TEST_F(RunSecurityTest, TheJobsOwnPodHasNoKeysOfWorkersAndServers) {
  EXPECT_THAT(GivenRoles(job_), ElementsAreArray(kRoles));
  PutInCluster("training", "", &job_);
  EXPECT_THAT(GivenRoles(job_),
              UnorderedElementsAre(Role::kMaster, Role::kScaler, Role::kOperator));
}

TEST_F(RunSecurityTest, WithoutTheJobsIdNothingIsMade) {
  EXPECT_THAT(PrepareCertificates(job_, state_, "", kNow).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(state_.journal())));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("tls")));
}

TEST_F(RunSecurityTest, AForgottenOptionDoesNotMeanPlainText) {
  EXPECT_THAT(CheckCertificatesGiven(job_, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--tls")));
  EXPECT_THAT(CheckCertificatesGiven(job_, "/s/tls"), IsOk());
  job_.security.tls = TlsUse::kAuto;
  EXPECT_THAT(CheckCertificatesGiven(job_, ""), IsOk());
}

TEST_F(RunSecurityTest, PlainTextThatOthersReachIsSaidAtEveryStart) {
  EXPECT_EQ(SecurityWarning(job_), "");
  job_.security = {.insecure = true};
  EXPECT_EQ(SecurityWarning(job_), "");
  job_.master_address = "10.0.0.1:0";
  EXPECT_THAT(SecurityWarning(job_), HasSubstr("WARNING"));
}

}  // namespace
}  // namespace muster
