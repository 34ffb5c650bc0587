#include "kubernetes/config/exec_plugin.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::_;
using ::testing::HasSubstr;

constexpr char kVersion[] = "client.authentication.k8s.io/v1";
constexpr char kToken[] =
    R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
    R"("status":{"token":"t"}})";

ClusterAccess Running(const std::string& script) {
  ClusterAccess access{.host = "10.0.0.1", .port = 6443};
  access.exec = ExecPlugin{.command = "sh",
                           .arguments = {"-c", script},
                           .environment = {{"GREETING", "hello"}},
                           .api_version = kVersion,
                           .wants_cluster = true,
                           .install_hint = "Buy it."};
  return access;
}

TEST(ExecCredential, Reads) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const Credentials credentials,
      ParseExecCredential(
          R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":
             {"token":"t","clientCertificateData":"c","clientKeyData":"k",
              "expirationTimestamp":"1970-01-01T00:01:00Z"}})",
          kVersion));
  EXPECT_EQ(credentials.token, "t");
  EXPECT_EQ(credentials.client_certificate, "c");
  EXPECT_EQ(credentials.client_key, "k");
  EXPECT_EQ(credentials.expires, seconds(60));
}

TEST(ExecCredential, RefusesOtherTexts) {
  const struct {
    const char* text;
    const char* says;
  } kCases[] = {
      {"no", "ExecCredential"},
      {R"({"kind":"Other"})", "ExecCredential"},
      {R"({"kind":"ExecCredential","apiVersion":"v2"})", "\"v2\""},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"})", "neither"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
           "status":{"clientKeyData":"k"}})",
       "neither"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
           "status":{"token":"t","expirationTimestamp":"soon"}})",
       "\"soon\""},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(ParseExecCredential(one.text, kVersion),
                testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(one.says)))
        << one.text;
  }
}

TEST(ExecPlugin, GetsItsEnvironment) {
  const testing::TempDir folder;
  const std::string seen = folder.File("seen");
  const auto credentials = RunExecPlugin(Running("echo $GREETING $KUBERNETES_EXEC_INFO >" + seen +
                                                 "; echo '" + std::string(kToken) + "'"),
                                         seconds(60));
  ASSERT_THAT(credentials, testing::IsOk());
  EXPECT_EQ(credentials->token, "t");
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(seen, 10'000));
  EXPECT_THAT(text, HasSubstr("hello"));
  EXPECT_THAT(text, HasSubstr("https://10.0.0.1:6443"));
  EXPECT_THAT(text, HasSubstr("\"interactive\":false"));
}

TEST(ExecPlugin, GetsTheCertificatesOfTheCluster) {
  const testing::TempDir folder;
  const std::string seen = folder.File("seen");
  ClusterAccess access =
      Running("echo $KUBERNETES_EXEC_INFO >" + seen + "; echo '" + std::string(kToken) + "'");
  access.authority.path = folder.File("ca.crt");
  ASSERT_THAT(WriteFileAtomically(access.authority.path, "PEM"), testing::IsOk());
  ASSERT_THAT(RunExecPlugin(access, seconds(60)), testing::IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(seen, 10'000));
  EXPECT_THAT(text, HasSubstr(R"("certificate-authority-data":"UEVN")"));
  access.authority.path = folder.File("none");
  EXPECT_THAT(RunExecPlugin(access, seconds(60)),
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST(ExecPlugin, SaysHowItFailed) {
  EXPECT_THAT(
      RunExecPlugin(Running("echo log in first >&2; exit 3"), seconds(60)),
      testing::StatusIs(absl::StatusCode::kUnauthenticated,
                        ::testing::AllOf(HasSubstr("exit code 3"), HasSubstr("log in first"))));
  EXPECT_THAT(RunExecPlugin(Running("kill -9 $$"), seconds(60)),
              testing::StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("signal 9")));
  EXPECT_THAT(RunExecPlugin(Running("head -c 3000000 /dev/zero"), seconds(60)),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 MiB")));
  ClusterAccess missing = Running("");
  missing.exec->command = "muster-no-such-plugin";
  EXPECT_THAT(RunExecPlugin(missing, seconds(60)),
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("Buy it.")));
}

TEST(ExecPlugin, EndsAtItsDeadline) {
  EXPECT_THAT(RunExecPlugin(Running("sleep 1000 & sleep 1000"), std::chrono::milliseconds(50)),
              testing::StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("in time")));
  // What it leaves behind holds its pipes open, and is not waited for.
  EXPECT_THAT(
      RunExecPlugin(Running("setsid sleep 20 & echo '" + std::string(kToken) + "'"), seconds(60)),
      testing::IsOk());
}

}  // namespace
}  // namespace muster::kubernetes
