#include "cli/cluster/cluster_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kKubeconfig[] = R"(
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]
current-context: x
)";

class KubeconfigVariable : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) {
      EXPECT_THAT(WriteFileAtomically(folder.File(name), kKubeconfig), testing::IsOk());
    }
  }
  void TearDown() override { ::unsetenv("KUBECONFIG"); }
  absl::StatusOr<std::string> NamespaceWith(const std::string& variable) {
    ::setenv("KUBECONFIG", variable.c_str(), 1);
    const absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open({}, "");
    if (!cluster.ok()) return cluster.status();
    return (*cluster)->ns();
  }
  testing::TempDir folder;
};

TEST_F(KubeconfigVariable, FilesThatAreNotThereDoNotCount) {
  EXPECT_EQ(NamespaceWith(folder.File("a")).value_or("-"), "team");
  EXPECT_EQ(NamespaceWith(folder.File("a") + ":").value_or("-"), "team");
  EXPECT_EQ(NamespaceWith(folder.File("none") + ":" + folder.File("a")).value_or("-"), "team");
}

TEST_F(KubeconfigVariable, SeveralFilesAreRefusedWithAWayOut) {
  EXPECT_THAT(NamespaceWith(folder.File("a") + ":" + folder.File("b")),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("--kubeconfig"), HasSubstr(folder.File("b")))));
}

TEST_F(KubeconfigVariable, NoneAtAll) {
  EXPECT_THAT(NamespaceWith(folder.File("none")),
              testing::StatusIs(absl::StatusCode::kNotFound,
                                AllOf(HasSubstr("no kubeconfig"), HasSubstr("--kubeconfig"))));
}

}  // namespace
}  // namespace muster::cluster
