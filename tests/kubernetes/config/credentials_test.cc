#include "kubernetes/config/credentials.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::_;
using ::testing::HasSubstr;

TEST(Credentials, Freshness) {
  EXPECT_TRUE(AreFresh(std::nullopt, seconds(1'000'000)));
  EXPECT_TRUE(AreFresh(seconds(100), seconds(89)));
  EXPECT_FALSE(AreFresh(seconds(100), seconds(90)));
  EXPECT_FALSE(AreFresh(seconds(100), seconds(200)));
}

TEST(Credentials, ATokenFileIsReadForEachRequest) {
  const testing::TempDir folder;
  const SystemClock clock;
  CredentialSource source({.token_file = folder.File("token"), .token = "of the text"}, &clock);
  EXPECT_THAT(source.Get(), testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("token")));
  ASSERT_THAT(WriteFileAtomically(folder.File("token"), "one\n"), testing::IsOk());
  EXPECT_EQ(source.Get()->token, "one");
  ASSERT_THAT(WriteFileAtomically(folder.File("token"), "two"), testing::IsOk());
  EXPECT_EQ(source.Get()->token, "two");
  ASSERT_THAT(WriteFileAtomically(folder.File("token"), "\n"), testing::IsOk());
  EXPECT_THAT(source.Get(), testing::StatusIs(absl::StatusCode::kUnauthenticated, _));
}

TEST(Credentials, CertificatesAreReadAgain) {
  const testing::TempDir folder;
  const SystemClock clock;
  CredentialSource source({.client_certificate = {.path = folder.File("crt"), .text = ""},
                           .client_key = {.path = "", .text = "key"}},
                          &clock);
  EXPECT_THAT(source.Get(), testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("crt")));
  ASSERT_THAT(WriteFileAtomically(folder.File("crt"), "one"), testing::IsOk());
  EXPECT_EQ(source.Get()->client_certificate, "one");
  ASSERT_THAT(WriteFileAtomically(folder.File("crt"), "two"), testing::IsOk());
  EXPECT_EQ(source.Get()->client_certificate, "two");
  EXPECT_EQ(source.Get()->client_key, "key");
}

/// A plugin that prints the number of its run as the token, valid until `expires`.
ClusterAccess Counting(const testing::TempDir& folder, const std::string& expires) {
  const std::string count = folder.File("count");
  ClusterAccess access;
  access.exec = ExecPlugin{
      .command = "sh",
      .arguments = {"-c", "echo x >>" + count + "; n=$(wc -l <" + count +
                              "); echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\","
                              "\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'$n'\"" +
                              expires + "}}'"},
      .api_version = "client.authentication.k8s.io/v1"};
  return access;
}

TEST(Credentials, APluginRunsAgainWhenItsCredentialsExpire) {
  const testing::TempDir folder;
  testing::FakeClock clock;
  CredentialSource source(Counting(folder, R"(,"expirationTimestamp":"1970-01-01T00:20:00Z")"),
                          &clock);
  ASSERT_EQ(clock.Wall(), seconds(1000));
  EXPECT_EQ(source.Get()->token, "1");
  clock.Advance(seconds(189));
  EXPECT_EQ(source.Get()->token, "1");
  clock.Advance(seconds(1));
  EXPECT_EQ(source.Get()->token, "2");
}

TEST(Credentials, APluginRunsAgainWhenTheServerRefuses) {
  const testing::TempDir folder;
  const SystemClock clock;
  CredentialSource source(Counting(folder, ""), &clock);
  const Credentials first = *source.Get();
  EXPECT_EQ(source.Get()->token, "1");
  source.Refused(first);
  EXPECT_EQ(source.Get()->token, "2");
  // A late word about what was replaced already changes nothing.
  source.Refused(first);
  EXPECT_EQ(source.Get()->token, "2");
}

TEST(Credentials, AFailingPluginIsToldAndTriedAgain) {
  const testing::TempDir folder;
  const SystemClock clock;
  ClusterAccess access;
  access.exec = ExecPlugin{.command = "false", .api_version = "client.authentication.k8s.io/v1"};
  CredentialSource source(access, &clock);
  EXPECT_THAT(source.Get(),
              testing::StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("false")));
  EXPECT_THAT(source.Get(), testing::StatusIs(absl::StatusCode::kUnauthenticated, _));
}

}  // namespace
}  // namespace muster::kubernetes
