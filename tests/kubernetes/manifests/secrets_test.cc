#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kubernetes/manifests/objects.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;

JobSecrets SomeSecrets() {
  JobSecrets secrets{.files = {{"ca.crt", "authority"}, {"ca.key", "key of it"}},
                     .token = "a token",
                     .job_id = "an id"};
  for (const std::string role : {"master", "ps", "scaler", "worker", "operator"}) {
    secrets.files[role + ".crt"] = role + " certificate";
    secrets.files[role + ".key"] = role + std::string("\0\n", 2);
  }
  return secrets;
}

std::vector<json> Made(const JobSecrets& secrets) {
  JobSpec spec;
  spec.name = "flights";
  return SecretsOf(spec, {.ns = "training", .image = {}, .job_file = {}}, secrets);
}

TEST(SecretsTest, TheKeyOfTheAuthorityIsApart) {
  const std::vector<json> made = Made(SomeSecrets());
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].at("metadata").at("name"), "flights-muster");
  EXPECT_EQ(made[0].at("metadata").at("namespace"), "training");
  EXPECT_EQ(made[0].at("data").size(), 13u);  // 5 roles, twice; ca.crt, token, job-id
  EXPECT_FALSE(made[0].at("data").contains("ca.key"));
  EXPECT_EQ(made[0].at("data").at("token"), "YSB0b2tlbg==");
  EXPECT_EQ(made[1].at("metadata").at("name"), "flights-muster-ca");
  EXPECT_EQ(made[1].at("data").size(), 3u);
  EXPECT_EQ(made[1].at("data").at("ca.crt"), made[0].at("data").at("ca.crt"));
}

TEST(SecretsTest, AreReadBack) {
  const JobSecrets secrets = SomeSecrets();
  const std::vector<json> made = Made(secrets);
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSecrets read, SecretsFrom(made[0], made[1]));
  EXPECT_EQ(read.files, secrets.files);
  EXPECT_EQ(read.token, secrets.token);
  EXPECT_EQ(read.job_id, secrets.job_id);
}

TEST(SecretsTest, TheIdOutlivesTheKeysOfThePods) {
  EXPECT_EQ(KeptJobId(Made(SomeSecrets())[1]), "an id");
  EXPECT_EQ(KeptJobId(json()), "");
  EXPECT_EQ(KeptJobId(json::object()), "");
}

TEST(SecretsTest, WhatIsMissingIsNamed) {
  std::vector<json> made = Made(SomeSecrets());
  EXPECT_THAT(SecretsFrom(made[0], json::object()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("lacks the key ca.key")));
  made[0].at("data").erase("worker.key");
  EXPECT_THAT(SecretsFrom(made[0], made[1]),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("the Secret flights-muster lacks the key worker.key"),
                             HasSubstr("the claim flights-state, and the job begins again"))));
  made[0].at("data")["worker.key"] = "*";
  EXPECT_THAT(SecretsFrom(made[0], made[1]),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("no base64"), HasSubstr("worker.key"))));
}

}  // namespace
}  // namespace muster::kubernetes
