#include "cli/manifests/manifest_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kText[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: flights}
spec:
  datasets: [{name: train, files: [/data/a]}]
  replicaSpecs: {worker: {command: [trainer]}}
)";

kubernetes::ManifestJob Job() {
  return kubernetes::ReadManifestJob(kText, "job.yaml", {.ns = "training", .image = "img"}).value();
}

TEST(ManifestTextTest, YamlSaysHowToApplyItAndWhereTheSecretsAre) {
  const std::string text =
      ManifestsText({.job_file = "my job.yaml", .flags = {.image = "a b"}}, Job());
  EXPECT_THAT(text, StartsWith("# The job flights in the namespace training, from muster "));
  EXPECT_THAT(text, HasSubstr("#   muster manifests 'my job.yaml' --secrets --namespace training "
                              "--image 'a b' | kubectl create -f -\n"));
  EXPECT_THAT(text, HasSubstr("flights-muster and flights-muster-ca are not here"));
  EXPECT_THAT(text, HasSubstr("\n---\napiVersion: batch/v1\nkind: Job\n"));
  EXPECT_THAT(text, Not(HasSubstr("kind: Secret")));
}

TEST(ManifestTextTest, JsonIsAList) {
  const auto list = nlohmann::json::parse(
      ManifestsText({.job_file = "j", .output = ManifestsOutput::kJson}, Job()));
  EXPECT_EQ(list.at("kind"), "List");
  EXPECT_EQ(list.at("items").back().at("kind"), "Job");
}

TEST(ManifestTextTest, Secrets) {
  const std::vector<nlohmann::json> secrets = {{{"kind", "Secret"}}};
  EXPECT_THAT(SecretsText({.job_file = "j"}, secrets),
              AllOf(HasSubstr("kubectl create -f -"), HasSubstr("---\nkind: Secret\n")));
  const auto list = nlohmann::json::parse(
      SecretsText({.job_file = "j", .output = ManifestsOutput::kJson}, secrets));
  EXPECT_EQ(list.at("items").at(0).at("kind"), "Secret");
}

TEST(ManifestTextTest, ALineBreakInANameEndsNoComment) {
  const std::string text = ManifestsText({.job_file = "a\nkind: b\r", .flags = {}}, Job());
  EXPECT_THAT(text, HasSubstr("#   muster manifests 'a kind: b ' --secrets"));
}

TEST(ManifestTextTest, AQuoteInANameEndsNoWordOfTheShell) {
  EXPECT_THAT(SecretsLine({.job_file = "it's"}, "a"), HasSubstr("manifests 'it'\\''s' --secrets"));
}

}  // namespace
}  // namespace muster
