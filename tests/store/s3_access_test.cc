#include "store/s3_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::StatusIs;

class S3AccessTest : public ::testing::Test {
 protected:
  S3AccessTest() {
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL",
                             "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(S3AccessTest, TheEnvironmentFillsInWhatIsOpen) {
  EXPECT_EQ(CompleteOptions({})->endpoint, "https://s3.us-east-1.amazonaws.com");
  ::setenv("AWS_DEFAULT_REGION", "eu-1", 1);
  EXPECT_EQ(CompleteOptions({})->endpoint, "https://s3.eu-1.amazonaws.com");
  ::setenv("AWS_REGION", "eu-2", 1);
  ::setenv("AWS_ENDPOINT_URL", "http://localhost:9000/", 1);
  EXPECT_EQ(CompleteOptions({})->region, "eu-2");
  EXPECT_EQ(CompleteOptions({})->endpoint, "http://localhost:9000");
  EXPECT_EQ(CompleteOptions({.endpoint = "https://mine", .region = "eu-3"})->endpoint,
            "https://mine");
  ::setenv("AWS_ENDPOINT_URL", "nonsense", 1);
  EXPECT_THAT(CompleteOptions({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nonsense")));
}

TEST_F(S3AccessTest, CredentialsOfTheEnvironment) {
  CredentialsSource source("");
  EXPECT_THAT(source.Get(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("spec.snapshots.s3.credentialsFile")));
  ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  ::setenv("AWS_SESSION_TOKEN", "token", 1);
  const auto given = source.Get();
  ASSERT_THAT(given, IsOk());
  EXPECT_EQ(given->access_key + given->secret_key + given->session_token, "keysecrettoken");
}

TEST_F(S3AccessTest, AFileIsReadAgainWhenItChanges) {
  const testing::TempDir folder;
  const std::string path = folder.File("credentials");
  CredentialsSource source(path);
  EXPECT_THAT(source.Get(), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(path)));
  const auto write = [&](const std::string& secret) {
    ASSERT_THAT(WriteFileAtomically(
                    path, "aws_access_key_id = k\naws_secret_access_key = " + secret + "\n"),
                IsOk());
  };
  write("one");
  EXPECT_EQ(source.Get()->secret_key, "one");
  write("two");
  EXPECT_EQ(source.Get()->secret_key, "two");
  ASSERT_THAT(WriteFileAtomically(path, "hunter2"), IsOk());
  EXPECT_THAT(source.Get(), StatusIs(absl::StatusCode::kPermissionDenied,
                                     AllOf(HasSubstr(path), Not(HasSubstr("hunter2")))));
}

TEST_F(S3AccessTest, CredentialsOfTheSameLengthThatAreWrittenInPlaceAreReadAgain) {
  const testing::TempDir folder;
  const std::string path = folder.File("credentials");
  CredentialsSource source(path);
  const auto write = [&](const std::string& secret) {
    std::ofstream(path) << "aws_access_key_id = k\naws_secret_access_key = " << secret << "\n";
  };
  write("one");
  ASSERT_EQ(source.Get()->secret_key, "one");
  const auto before = std::filesystem::last_write_time(path);
  write("two");
  std::filesystem::last_write_time(path, before + std::chrono::nanoseconds(1));
  EXPECT_EQ(source.Get()->secret_key, "two");
  write("six");
  std::filesystem::last_write_time(path, before + std::chrono::seconds(1));
  EXPECT_EQ(source.Get()->secret_key, "six");
}

}  // namespace
}  // namespace muster
