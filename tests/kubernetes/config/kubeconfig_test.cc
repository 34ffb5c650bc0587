#include "kubernetes/config/kubeconfig.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTwoContexts[] = R"(
apiVersion: v1
kind: Config
current-context: near
contexts:
- name: near
  context: {cluster: here, user: me, namespace: team}
- name: far
  context: {cluster: there, user: robot}
clusters:
- name: here
  cluster: {server: "https://127.0.0.1:6443", certificate-authority: pki/ca.crt}
- name: there
  cluster:
    server: https://api.example.com/prefix
    tls-server-name: inside
    certificate-authority: ignored
    certificate-authority-data: aGVsbG8=
users:
- name: me
  user: {client-certificate: /abs/me.crt, client-key: me.key, token: t, tokenFile: tok}
- name: robot
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [get, "token"]
      env: [{name: A, value: b}]
      provideClusterInfo: true
      installHint: Ask the cloud.
)";

/// A kubeconfig with one context; `cluster` and `user` are the insides of flow maps.
std::string With(const std::string& cluster, const std::string& user,
                 const std::string& context = "cluster: c, user: u") {
  return "current-context: x\ncontexts: [{name: x, context: {" + context +
         "}}]\nclusters: [{name: c, cluster: {" + cluster + "}}]\nusers: [{name: u, user: {" +
         user + "}}]\n";
}

TEST(Kubeconfig, TheCurrentContext) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ClusterAccess access,
                              ParseKubeconfig(kTwoContexts, "/home/me", ""));
  EXPECT_EQ(access.Url(), "https://127.0.0.1:6443");
  EXPECT_EQ(access.authority.path, "/home/me/pki/ca.crt");
  EXPECT_EQ(access.client_certificate.path, "/abs/me.crt");
  EXPECT_EQ(access.client_key.path, "/home/me/me.key");
  EXPECT_EQ(access.token_file, "/home/me/tok");
  EXPECT_EQ(access.token, "t");
  EXPECT_EQ(access.ns, "team");
  EXPECT_FALSE(access.exec.has_value());
}

TEST(Kubeconfig, ANamedContext) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const ClusterAccess access,
                              ParseKubeconfig(kTwoContexts, "/home/me", "far"));
  EXPECT_EQ(access.Url(), "https://api.example.com:443/prefix");
  EXPECT_EQ(access.tls_server_name, "inside");
  EXPECT_EQ(access.authority, (PemSource{.path = "", .text = "hello"}));
  EXPECT_EQ(access.ns, "default");
  ASSERT_TRUE(access.exec.has_value());
  EXPECT_EQ(access.exec->command, "/home/me/bin/login");
  EXPECT_THAT(access.exec->arguments, ::testing::ElementsAre("get", "token"));
  EXPECT_THAT(access.exec->environment, ::testing::ElementsAre(::testing::Pair("A", "b")));
  EXPECT_TRUE(access.exec->wants_cluster);
  EXPECT_EQ(access.exec->install_hint, "Ask the cloud.");
}

TEST(Kubeconfig, SaysWhatIsMissing) {
  EXPECT_THAT(ParseKubeconfig(kTwoContexts, "/", "other"),
              testing::StatusIs(
                  absl::StatusCode::kNotFound,
                  ::testing::AllOf(HasSubstr("\"other\" in contexts"), HasSubstr("there are: "))));
  EXPECT_THAT(ParseKubeconfig(With("server: https://a", "", "cluster: d, user: u"), "/", ""),
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"d\" in clusters")));
  EXPECT_THAT(ParseKubeconfig(With("server: https://a", "", "cluster: c, user: v"), "/", ""),
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"v\" in users")));
  EXPECT_THAT(ParseKubeconfig("contexts: []", "/", ""),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("current-context")));
}

TEST(Kubeconfig, RefusesWhatMusterDoesNotDo) {
  const struct {
    std::string text;
    const char* says;
  } kCases[] = {
      {With("server: https://a, insecure-skip-tls-verify: true", ""), "insecure-skip-tls-verify"},
      {With("server: http://a", ""), "https://"},
      {With("server: https://a, proxy-url: http://p", ""), "proxy-url"},
      {With("server: https://a", "username: me, password: p"), "username"},
      {With("server: https://a", "auth-provider: {name: gcp}"), "auth-provider"},
      {With("server: https://a", "as: root"), "\"as\""},
      {With("server: https://a", "client-key: k"), "without a client-key"},
      {With("server: https://a, certificate-authority-data: '*'", ""), "base64"},
      {With("server: https://a", "exec: {command: c, apiVersion: v9}"), "v9"},
      {With("server: https://a", "exec: {apiVersion: client.authentication.k8s.io/v1}"), "command"},
      {With("server: https://a",
            "exec: {command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
            "Always}"),
       "terminal"},
      {With("server: [https://a]", ""), "must be a text"},
      {With("server: https://a", "", "cluster: c, user: u, namespace: A_B"), "A_B"},
      {"[]", "no kubeconfig"},
      {"a: [", "no valid YAML at line"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(ParseKubeconfig(one.text, "/", ""),
                testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(one.says)))
        << one.text;
  }
  EXPECT_THAT(
      ParseKubeconfig(With("server: https://a, insecure-skip-tls-verify: false", ""), "/", ""),
      testing::IsOk());
}

TEST(Kubeconfig, NoMessageQuotesASecret) {
  const auto access = ParseKubeconfig("token: \"geheim\nusers: {", "/", "");
  ASSERT_FALSE(access.ok());
  EXPECT_THAT(std::string(access.status().message()), Not(HasSubstr("geheim")));
}

TEST(Kubeconfig, LoadsAFile) {
  const testing::TempDir folder;
  ASSERT_THAT(WriteFileAtomically(folder.File("config"), kTwoContexts), testing::IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const ClusterAccess access,
                              LoadKubeconfig(folder.File("config"), ""));
  EXPECT_EQ(access.client_key.path, folder.File("me.key"));
  EXPECT_THAT(LoadKubeconfig(folder.File("config"), "no"),
              testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder.File("config"))));
}

TEST(InCluster, ReadsTheFilesOfThePod) {
  const testing::TempDir folder;
  EXPECT_THAT(InClusterAccess("10.0.0.1", "443", folder.path()),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("automountServiceAccountToken")));
  ASSERT_THAT(WriteFileAtomically(folder.File("token"), "t"), testing::IsOk());
  ASSERT_THAT(WriteFileAtomically(folder.File("namespace"), "team\n"), testing::IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const ClusterAccess access,
                              InClusterAccess("fd00::1", "6443", folder.path()));
  EXPECT_EQ(access.Url(), "https://[fd00::1]:6443");
  EXPECT_EQ(access.ns, "team");
  EXPECT_EQ(access.token_file, folder.File("token"));
  EXPECT_EQ(access.authority.path, folder.File("ca.crt"));
  EXPECT_THAT(InClusterAccess("", "", folder.path()),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no pod")));
  EXPECT_THAT(InClusterAccess("10.0.0.1", "x", folder.path()),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, _));
}

}  // namespace
}  // namespace muster::kubernetes
