#include "store/names/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::StatusIs;

TEST(CredentialsTest, TheDefaultSectionIsRead) {
  const auto read = ParseCredentials(
      "# mine\n[other]\naws_access_key_id=no\n[default]\r\n aws_access_key_id = key\r\n"
      "aws_secret_access_key=a=b\naws_session_token = t\nregion = x");
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->access_key, "key");
  EXPECT_EQ(read->secret_key, "a=b");
  EXPECT_EQ(read->session_token, "t");
  EXPECT_THAT(ParseCredentials("aws_access_key_id=k\naws_secret_access_key=s"), IsOk())
      << "no section";
}

TEST(CredentialsTest, ErrorsShowNoSecret) {
  const absl::Status line = ParseCredentials("[default]\nmysecret").status();
  EXPECT_THAT(line, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2")));
  EXPECT_THAT(line, Not(StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mysecret"))));
  const absl::Status half = ParseCredentials("aws_secret_access_key = mysecret").status();
  EXPECT_THAT(half, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("missing")));
  EXPECT_THAT(half, Not(StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mysecret"))));
}

}  // namespace
}  // namespace muster
