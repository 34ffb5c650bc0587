#include "security/certificate_authority.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "security/certificate.h"
#include "security/credentials.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using std::chrono::hours;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EnsureCertificatesTest : public ::testing::Test {
 protected:
  static constexpr WallTime kNow = hours(24 * 365 * 50);
  static constexpr hours kDay{24};

  absl::StatusOr<std::vector<std::string>> Ensure(WallTime now = kNow) {
    return EnsureCertificates(options_, now);
  }
  std::string Path(const std::string& name) const { return options_.directory + "/" + name; }
  std::string Text(const std::string& name) const {
    return ReadFile(Path(name), 1 << 20).value_or("none");
  }
  mode_t Mode(const std::string& path) const {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  TempDir dir_;
  CertificateOptions options_{.directory = dir_.File("state/tls"), .job_id = "0a1b", .hosts = {}};
};

TEST_F(EnsureCertificatesTest, MakesEverythingOnce) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto made, Ensure());
  EXPECT_THAT(made, SizeIs(2 + 2 * kRoles.size()));
  for (const Role role : kRoles) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const Credentials credentials,
                                LoadCredentials(CredentialFilesOf(options_.directory, role),
                                                {.job_id = "0a1b", .role = role}, kNow));
    EXPECT_EQ(credentials.identity, (Identity{"0a1b", role, std::string(RoleWord(role))}));
    EXPECT_EQ(credentials.expires, kNow + 90 * kDay);
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto again, Ensure());
  EXPECT_THAT(again, IsEmpty());
}

TEST_F(EnsureCertificatesTest, OnlyTheOwnerReadsKeys) {
  EXPECT_THAT(Ensure(), IsOk());
  EXPECT_EQ(Mode(options_.directory), 0700u);
  EXPECT_EQ(Mode(Path("ca.key")), 0600u);
  EXPECT_EQ(Mode(Path("worker.key")), 0600u);
}

TEST_F(EnsureCertificatesTest, RenewsInTheLastThirdAndKeepsTheKeys) {
  EXPECT_THAT(Ensure(), IsOk());
  const std::string key = Text("ps.key");
  const std::string authority = Text("ca.crt");
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto early, Ensure(kNow + 59 * kDay));
  EXPECT_THAT(early, IsEmpty());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto renewed, Ensure(kNow + 61 * kDay));
  EXPECT_THAT(renewed,
              ElementsAre("master.crt", "ps.crt", "scaler.crt", "worker.crt", "operator.crt"));
  EXPECT_EQ(Text("ps.key"), key);
  EXPECT_EQ(Text("ca.crt"), authority);
  // A job that stood still for years goes on, too.
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto late, Ensure(kNow + 3000 * kDay));
  EXPECT_THAT(late, SizeIs(1 + kRoles.size()));
  EXPECT_THAT(
      LoadCredentials(CredentialFilesOf(options_.directory, Role::kServer), {}, kNow + 3001 * kDay),
      IsOk());
}

TEST_F(EnsureCertificatesTest, ANewAuthorityCertificateAcceptsWhatTheOldOneSigned) {
  EXPECT_THAT(Ensure(), IsOk());
  ASSERT_EQ(::unlink(Path("ca.crt").c_str()), 0);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto made, Ensure());
  EXPECT_THAT(made, ElementsAre("ca.crt"));
  EXPECT_THAT(LoadCredentials(CredentialFilesOf(options_.directory, Role::kServer), {}, kNow),
              IsOk());
}

TEST_F(EnsureCertificatesTest, MakesWhatIsMissingAndWhatLacksAHost) {
  EXPECT_THAT(Ensure(), IsOk());
  ASSERT_EQ(::unlink(Path("worker.key").c_str()), 0);
  options_.hosts[Role::kScaler] = {"10.0.0.1", "train.example.org"};
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto made, Ensure());
  EXPECT_THAT(made, ElementsAre("scaler.crt", "worker.key", "worker.crt"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto certificate,
                              security::ParseCertificate(Text("scaler.crt")));
  EXPECT_TRUE(security::CoversHost(certificate.get(), "10.0.0.1"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto again, Ensure());
  EXPECT_THAT(again, IsEmpty());
}

TEST_F(EnsureCertificatesTest, RefusesAKeyThatOthersMayRead) {
  EXPECT_THAT(Ensure(), IsOk());
  ASSERT_EQ(::chmod(Path("ps.key").c_str(), 0644), 0);
  EXPECT_THAT(Ensure(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr(Path("ps.key")), HasSubstr("mode 0644"),
                                       HasSubstr("chmod 600"))));
}

TEST_F(EnsureCertificatesTest, RefusesFilesOfAnotherJob) {
  EXPECT_THAT(Ensure(), IsOk());
  options_.job_id = "ffff";
  EXPECT_THAT(Ensure(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(Path("ca.crt")), HasSubstr("belongs to job 0a1b"),
                             HasSubstr("ffff"), HasSubstr("remove " + options_.directory))));
}

TEST_F(EnsureCertificatesTest, RefusesAKeyOfAnotherCertificate) {
  EXPECT_THAT(Ensure(), IsOk());
  std::filesystem::copy_file(Path("ps.key"), Path("worker.key"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Ensure(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("worker.crt"), HasSubstr("its key is not"))));
}

TEST_F(EnsureCertificatesTest, RefusesACertificateOfAnotherRoleOrAuthority) {
  EXPECT_THAT(Ensure(), IsOk());
  for (const char* end : {".crt", ".key"}) {
    std::filesystem::copy_file(Path(std::string("ps") + end), Path(std::string("worker") + end),
                               std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_THAT(Ensure(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("it belongs to muster://0a1b/ps/ps")));
  std::filesystem::remove(Path("worker.crt"));
  EXPECT_THAT(Ensure(), IsOk());
  std::filesystem::remove(Path("ca.crt"));
  std::filesystem::remove(Path("ca.key"));
  EXPECT_THAT(Ensure(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("master.crt"), HasSubstr("did not sign it"))));
}

TEST_F(EnsureCertificatesTest, AnAuthorityWithoutItsKeyIsNotReplacedUnasked) {
  EXPECT_THAT(Ensure(), IsOk());
  const std::string authority = Text("ca.crt");
  std::filesystem::remove(Path("ca.key"));
  EXPECT_THAT(Ensure(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr(Path("ca.key")), HasSubstr("put it back"))));
  EXPECT_EQ(Text("ca.crt"), authority);
}

}  // namespace
}  // namespace muster
