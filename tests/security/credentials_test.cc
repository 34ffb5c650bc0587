#include "security/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "security/certificate_authority.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using std::chrono::hours;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CredentialsTest : public ::testing::Test {
 protected:
  static constexpr WallTime kNow = hours(24 * 365 * 50);
  static constexpr hours kDay{24};

  void SetUp() override {
    EXPECT_THAT(
        EnsureCertificates({.directory = dir_.File("a"), .job_id = "ja", .hosts = {}}, kNow),
        IsOk());
  }
  absl::Status Load(WallTime now = kNow, ExpectedIdentity expected = {"ja", Role::kWorker}) const {
    return LoadCredentials(files_, expected, now).status();
  }

  TempDir dir_;
  CredentialFiles files_ = CredentialFilesOf(dir_.File("a"), Role::kWorker);
};

TEST_F(CredentialsTest, FilesAreNamedByTheirRole) {
  EXPECT_EQ(CredentialFilesOf("/d", Role::kServer),
            (CredentialFiles{.ca = "/d/ca.crt", .certificate = "/d/ps.crt", .key = "/d/ps.key"}));
  EXPECT_THAT(Load(), IsOk());
}

TEST_F(CredentialsTest, AMissingFileIsNamed) {
  std::filesystem::remove(files_.certificate);
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kNotFound, HasSubstr(files_.certificate)));
}

TEST_F(CredentialsTest, ExpiredAndNotYetValid) {
  EXPECT_THAT(Load(kNow + 91 * kDay),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(files_.certificate), HasSubstr("expired at 2020-03-19T"),
                             HasSubstr("muster run"))));
  EXPECT_THAT(Load(kNow - 1 * kDay), StatusIs(absl::StatusCode::kFailedPrecondition,
                                              HasSubstr("is not valid before 2019-12-19T23:55")));
}

TEST_F(CredentialsTest, AnotherJobAnotherRole) {
  EXPECT_THAT(Load(kNow, {"jb", Role::kWorker}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("belongs to job ja, but this job is jb")));
  EXPECT_THAT(Load(kNow, {"ja", Role::kServer}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is one of role worker, but ps is needed")));
}

TEST_F(CredentialsTest, AKeyThatOthersMayRead) {
  ASSERT_EQ(::chmod(files_.key.c_str(), 0604), 0);
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr(files_.key), HasSubstr("mode 0604"))));
}

TEST_F(CredentialsTest, AMountedSecretOfRootMayBeReadByItsGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a file of root";
  ASSERT_EQ(::chmod(files_.key.c_str(), 0440), 0);
  EXPECT_THAT(Load(), IsOk());
  ASSERT_EQ(::chown(files_.key.c_str(), 1, 1), 0);
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("mode 0440")));
}

TEST_F(CredentialsTest, AKeyOfAnotherCertificate) {
  files_.key = dir_.File("a/ps.key");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("ps.key: the key does not belong"),
                                     HasSubstr(files_.certificate))));
}

TEST_F(CredentialsTest, AnotherAuthority) {
  // The same job's id, so only the signature differs.
  EXPECT_THAT(EnsureCertificates({.directory = dir_.File("b"), .job_id = "ja", .hosts = {}}, kNow),
              IsOk());
  files_.ca = dir_.File("b/ca.crt");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr(files_.certificate), HasSubstr("did not sign"))));
}

TEST_F(CredentialsTest, AFileThatIsNoCertificateOrNoKey) {
  CredentialFiles files = files_;
  std::swap(files.key, files.ca);
  EXPECT_THAT(LoadCredentials(files, {}, kNow).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no certificate in PEM")));
  files = files_;
  files.key = dir_.File("no.key");
  std::filesystem::copy_file(files_.certificate, files.key);
  ASSERT_EQ(::chmod(files.key.c_str(), 0600), 0);
  EXPECT_THAT(LoadCredentials(files, {}, kNow).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no key in PEM")));
}

}  // namespace
}  // namespace muster
