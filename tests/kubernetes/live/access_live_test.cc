#include <gtest/gtest.h>

#include "base/file.h"
#include "kubernetes/client/client.h"
#include "kubernetes/model/api_error.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using testing::Kubectl;
using testing::OtherClient;
using testing::PodRunning;

class AccessLiveTest : public testing::LiveTest {
 protected:
  /// The access of the namespace's service account, without a token.
  static ClusterAccess Anonymous() {
    ClusterAccess access = testing::AdminAccess();
    access.client_certificate = {};
    access.client_key = {};
    return access;
  }
  std::string NewToken() const { return Kubectl("create token default -n " + ns_); }
  void AllowPods(const std::string& verbs) const {
    Kubectl("create role pods --verb=" + verbs + " --resource=pods -n " + ns_);
    Kubectl("create rolebinding pods --role=pods --serviceaccount=" + ns_ + ":default -n " + ns_);
  }

  const testing::TempDir folder_;
};

TEST_F(AccessLiveTest, RbacNamesWhatIsMissing) {
  ClusterAccess access = Anonymous();
  access.token = NewToken();
  while (access.token.ends_with('\n')) access.token.pop_back();
  OtherClient other(access, &clock_);
  const absl::Status status = other.client.List(Resource::kPods, ns_, {}).status();
  EXPECT_EQ(KindOf(status), ApiErrorKind::kForbidden);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"system:serviceaccount:" + ns_ +
                                                       ":default\" may not list pods in the "
                                                       "namespace \"" +
                                                       ns_ + "\""));
  EXPECT_EQ(*other.client.MayI("list", Resource::kPods, "", ns_), false);
  EXPECT_EQ(KindOf(other.client.Logs(ns_, "a", {}).status()), ApiErrorKind::kForbidden);
  AllowPods("list");
  const TimePoint end = clock_.Now() + testing::kClusterPatience;
  while (!*other.client.MayI("list", Resource::kPods, "", ns_)) ASSERT_LT(clock_.Now(), end);
  EXPECT_THAT(other.client.List(Resource::kPods, ns_, {}), testing::IsOk());
}

TEST_F(AccessLiveTest, ATokenFileThatIsRenewed) {
  AllowPods("list");
  ClusterAccess access = Anonymous();
  access.token_file = folder_.File("token");
  ASSERT_THAT(WriteFileAtomically(access.token_file, "not a token"), testing::IsOk());
  OtherClient other(access, &clock_);
  EXPECT_EQ(KindOf(other.client.List(Resource::kPods, ns_, {}).status()),
            ApiErrorKind::kUnauthorized);
  ASSERT_THAT(WriteFileAtomically(access.token_file, NewToken()), testing::IsOk());
  EXPECT_THAT(other.client.List(Resource::kPods, ns_, {}), testing::IsOk());
}

TEST_F(AccessLiveTest, ACredentialPlugin) {
  AllowPods("list");
  ASSERT_THAT(WriteFileAtomically(folder_.File("token"), NewToken()), testing::IsOk());
  ClusterAccess access = Anonymous();
  access.exec =
      ExecPlugin{.command = "sh",
                 .arguments = {"-c",
                               "echo \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\","
                               "\\\"kind\\\":\\\"ExecCredential\\\",\\\"status\\\":{\\\"token\\\":"
                               "\\\"$(cat " +
                                   folder_.File("token") + ")\\\"}}\""},
                 .api_version = "client.authentication.k8s.io/v1"};
  OtherClient other(access, &clock_);
  EXPECT_THAT(other.client.List(Resource::kPods, ns_, {}), testing::IsOk());
}

TEST_F(AccessLiveTest, AnotherAuthority) {
  ClusterAccess access = testing::AdminAccess();
  access.authority = {};
  OtherClient other(access, &clock_);
  EXPECT_THAT(other.client.List(Resource::kPods, ns_, {}),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
}

TEST_F(AccessLiveTest, AQuotaThatIsUsedUp) {
  Kubectl("create quota q --hard=pods=1 -n " + ns_);
  const TimePoint end = clock_.Now() + testing::kClusterPatience;
  absl::Status status;
  // The quota counts only when the controller has seen it.
  for (int i = 0; KindOf(status) != ApiErrorKind::kQuotaExceeded; ++i) {
    ASSERT_LT(clock_.Now(), end) << status;
    status = client_->Create(Resource::kPods, ns_, PodRunning("p" + std::to_string(i), "sleep 9"))
                 .status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("exceeded quota: q"));
}

}  // namespace
}  // namespace muster::kubernetes
