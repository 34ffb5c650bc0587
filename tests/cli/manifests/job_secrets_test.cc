#include "cli/manifests/job_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "security/certificate.h"
#include "security/credentials.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

const WallTime kNow = SystemClock().Wall();
constexpr std::chrono::hours kDay{24};

class JobSecretsTest : public ::testing::Test {
 protected:
  JobSecretsTest() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~JobSecretsTest() override { ::unsetenv("TMPDIR"); }

  /// What a process reads that finds the secrets as files, with the mode that a kubelet gives.
  absl::StatusOr<Credentials> Load(const kubernetes::JobSecrets& secrets, Role role, WallTime now) {
    const testing::TempDir mounted;
    for (const auto& [name, text] : secrets.files) {
      MUSTER_CHECK(WriteFileAtomically(mounted.File(name), text, FileAccess::kOwnerOnly).ok());
    }
    return LoadCredentials(CredentialFilesOf(mounted.path(), role), {secrets.job_id, role}, now);
  }

  const testing::TempDir folder_;
};

TEST_F(JobSecretsTest, EveryRoleHasCredentialsForAYear) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets secrets,
                              MakeJobSecrets("flights", "training", kNow));
  EXPECT_THAT(secrets.files, SizeIs(12));
  EXPECT_THAT(secrets.token, SizeIs(64));
  EXPECT_THAT(secrets.job_id, SizeIs(32));
  for (const Role role : kRoles) {
    EXPECT_THAT(Load(secrets, role, kNow + 364 * kDay), testing::IsOk());
    EXPECT_FALSE(Load(secrets, role, kNow + 366 * kDay).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "no secret may stay on this machine";
}

TEST_F(JobSecretsTest, TheScalersCertificateNamesTheService) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets secrets,
                              MakeJobSecrets("flights", "training", kNow));
  MUSTER_ASSERT_OK_AND_ASSIGN(const security::Certificate scaler,
                              security::ParseCertificate(secrets.files.at("scaler.crt")));
  EXPECT_THAT(security::HostsOf(scaler.get()), Contains("flights-master.training.svc"));
  EXPECT_THAT(security::HostsOf(scaler.get()),
              Contains("flights-master.training.svc.cluster.local"));
}

TEST_F(JobSecretsTest, TwoJobsShareNothing) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets a, MakeJobSecrets("a", "b", kNow));
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets b, MakeJobSecrets("a", "b", kNow));
  EXPECT_NE(a.token, b.token);
  EXPECT_NE(a.job_id, b.job_id);
  for (const auto& [name, text] : a.files) EXPECT_NE(b.files.at(name), text) << name;
}

TEST_F(JobSecretsTest, AJobWithStateKeepsItsId) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets first, MakeJobSecrets("a", "b", kNow));
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets second,
                              MakeJobSecrets("a", "b", kNow, first.job_id));
  EXPECT_EQ(second.job_id, first.job_id);
  EXPECT_NE(second.token, first.token);
  EXPECT_NE(second.files.at("ca.crt"), first.files.at("ca.crt"));
  EXPECT_THAT(Load(second, Role::kMaster, kNow), testing::IsOk());
}

char g_secret_folder[256];
volatile sig_atomic_t g_secrets_seen = -1;

/// Ctrl-C would end a process at once, and leave the keys.
TEST_F(JobSecretsTest, SignalsWaitUntilTheKeysAreGone) {
  ::signal(SIGTERM, [](int) { g_secrets_seen = ::access(g_secret_folder, F_OK) == 0; });
  const pthread_t maker = ::pthread_self();
  // The thread that watches may get no turn while the folder is there.
  for (int tries = 0; tries < 100 && g_secrets_seen < 0; ++tries) {
    const std::jthread watcher([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path(), ignored)) {
          entry.path().string().copy(g_secret_folder, sizeof(g_secret_folder) - 1);
          ::pthread_kill(maker, SIGTERM);
          return;
        }
      }
    });
    EXPECT_THAT(MakeJobSecrets("a", "b", kNow), testing::IsOk());
  }
  ::signal(SIGTERM, SIG_DFL);
  EXPECT_EQ(g_secrets_seen, 0);
}

TEST_F(JobSecretsTest, RenewalKeepsWhatProcessesAlreadyHave) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets secrets,
                              MakeJobSecrets("flights", "training", kNow));
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets same,
                              RenewJobSecrets(secrets, "flights", "training", kNow + kDay));
  EXPECT_EQ(same.files, secrets.files);
  const WallTime later = kNow + 300 * kDay;
  MUSTER_ASSERT_OK_AND_ASSIGN(const kubernetes::JobSecrets renewed,
                              RenewJobSecrets(secrets, "flights", "training", later));
  EXPECT_EQ(renewed.token, secrets.token);
  EXPECT_EQ(renewed.job_id, secrets.job_id);
  for (const char* kept : {"ca.crt", "ca.key", "worker.key", "master.key"}) {
    EXPECT_EQ(renewed.files.at(kept), secrets.files.at(kept)) << kept;
  }
  EXPECT_NE(renewed.files.at("worker.crt"), secrets.files.at("worker.crt"));
  EXPECT_THAT(Load(renewed, Role::kWorker, later + 364 * kDay), testing::IsOk());
}

/// A kubelet gives the files of a Secret to root and the pod's group, with mode 0440.
TEST_F(JobSecretsTest, AKeyOfRootThatTheGroupMayReadIsTaken) {
  if (::geteuid() != 0) GTEST_SKIP() << "the key must belong to root";
  const std::string key = folder_.File("worker.key");
  ASSERT_THAT(WriteFileAtomically(key, "key"), testing::IsOk());
  ASSERT_EQ(::chown(key.c_str(), 0, 10001), 0);
  ASSERT_EQ(::chmod(key.c_str(), 0440), 0);
  EXPECT_THAT(ReadKeyFile(key), testing::IsOk());
  ASSERT_EQ(::chmod(key.c_str(), 0444), 0);
  EXPECT_FALSE(ReadKeyFile(key).ok());
}

}  // namespace
}  // namespace muster
