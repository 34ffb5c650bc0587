#include "cli/cluster/link_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/token_file.h"
#include "security/credentials.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

json SecretWith(const std::string& token_base64) {
  return {{"metadata", {{"name", "ads-muster"}}},
          {"data",
           {{"ca.crt", "Y2E="},
            {"operator.crt", "Y2VydA=="},
            {"operator.key", "a2V5"},
            {"token", token_base64},
            {"job-id", "am9iLTE="}}}};
}

constexpr char kTokenBase64[] =
    "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==";

TEST(LinkFiles, LookLikeAStateDirectory) {
  const testing::TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(WriteLinkFiles({.job = "ads",
                              .run_id = "uid",
                              .secret = SecretWith(kTokenBase64),
                              .job_file = "text",
                              .master_port = 1,
                              .rest_port = 2},
                             state),
              testing::IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const Endpoint endpoint, state.ReadEndpoint());
  EXPECT_EQ(endpoint.master, "127.0.0.1:1");
  EXPECT_EQ(endpoint.job.id, "job-1");
  EXPECT_EQ(endpoint.job.name, "ads");
  EXPECT_EQ(endpoint.pid, ::getpid());
  MUSTER_ASSERT_OK_AND_ASSIGN(const RestAddress rest, state.ReadRestAddress());
  EXPECT_EQ(rest.port, 2);
  EXPECT_EQ(rest.certificates, state.certificates());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string token, LoadToken(state.token()));
  EXPECT_EQ(token, kToken);
  const CredentialFiles files = CredentialFilesOf(endpoint.certificates, Role::kOperator);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string key, ReadKeyFile(files.key));
  EXPECT_EQ(key, "key");
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string copy, ReadFile(state.job_copy(), 100));
  EXPECT_EQ(copy, "text");
}

TEST(LinkFiles, ASecretThatCannotBeUsed) {
  const testing::TempDir folder;
  const absl::Status status =
      WriteLinkFiles({.job = "ads", .secret = SecretWith("*")}, StateDirectory(folder.path()));
  EXPECT_THAT(status,
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("ads-muster has no usable token; delete the Secrets")));
}

}  // namespace
}  // namespace muster::cluster
