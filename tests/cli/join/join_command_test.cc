#include "cli/join/join_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <string>

#include "base/clock.h"
#include "cli/show/output.h"
#include "security/certificate_authority.h"
#include "security/credentials.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

class JoinCommandTest : public ::testing::Test {
 protected:
  JoinCommandTest() {
    options_.master_address = "127.0.0.1:1";
    options_.role = "ps";
    options_.state_directory = folder_.File("join");
    options_.patience_s = 0;
  }

  testing::TempDir folder_;
  JoinOptions options_;
};

TEST_F(JoinCommandTest, WrongArgumentsAreRefusedBeforeAnythingIsAsked) {
  options_.command = {"/bin/true"};
  EXPECT_EQ(JoinCommand(options_), kExitUsage) << "a server has no command";
  options_.command.clear();
  options_.role = "worker";
  EXPECT_EQ(JoinCommand(options_), kExitUsage) << "a worker has one";
  options_.command = {"/no/such/trainer"};
  EXPECT_EQ(JoinCommand(options_), kExitUsage);
  options_.role = "master";
  EXPECT_EQ(JoinCommand(options_), kExitUsage);
  options_.role = "ps";
  options_.command.clear();
  options_.ports = "9-1";
  EXPECT_EQ(JoinCommand(options_), kExitUsage);
  options_.ports = "0";
  options_.master_address = "nowhere";
  EXPECT_EQ(JoinCommand(options_), kExitUsage);
}

TEST_F(JoinCommandTest, AWorkerIsToldWhatItsMachineLacks) {
  options_.role = "worker";
  options_.command = {"./no-such-trainer"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(JoinCommand(options_), kExitUsage);
  // The job file is on another machine: it is no help here.
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(::testing::HasSubstr("./no-such-trainer"),
                               ::testing::Not(::testing::HasSubstr("replicaSpecs"))));
  options_.command = {"/bin/true"};
  for (const std::string& root : {folder_.path(), folder_.File("absent")}) {
    options_.data_root = root;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(JoinCommand(options_), kExitUsage);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("--data-root"));
  }
}

TEST_F(JoinCommandTest, TheCertificateOfTheNodeIsEnough) {
  options_.tls = folder_.File("tls");
  ASSERT_THAT(EnsureCertificates({.directory = options_.tls, .job_id = "id-1", .hosts = {}},
                                 SystemClock().Wall()),
              testing::IsOk());
  for (const Role role : {Role::kOperator, Role::kMaster, Role::kScaler, Role::kWorker}) {
    const CredentialFiles files = CredentialFilesOf(options_.tls, role);
    ASSERT_EQ(::unlink(files.certificate.c_str()), 0);
    ASSERT_EQ(::unlink(files.key.c_str()), 0);
  }
  EXPECT_EQ(JoinCommand(options_), kExitUnreachable) << "it asks, and no master is there";
  ASSERT_EQ(::unlink(CredentialFilesOf(options_.tls, Role::kServer).key.c_str()), 0);
  EXPECT_EQ(JoinCommand(options_), kExitUsage);
}

TEST_F(JoinCommandTest, AMasterThatNeverAnswersIsGivenUp) {
  EXPECT_EQ(JoinCommand(options_), kExitUnreachable);
}

}  // namespace
}  // namespace muster
