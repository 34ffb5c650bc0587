#include <gmock/gmock.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

TEST(ManifestsVerbTest, ArgumentsFindTheirPlaces) {
  const auto options = Parsed<ManifestsOptions>(
      AddManifests, "manifests job.yaml --namespace a --image b --output json --kustomize c");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->job_file, "job.yaml");
  EXPECT_EQ(options->flags.ns, "a");
  EXPECT_EQ(options->flags.image, "b");
  EXPECT_EQ(options->output, ManifestsOutput::kJson);
  EXPECT_EQ(options->kustomize, "c");
  EXPECT_FALSE(options->secrets);
  EXPECT_TRUE(Parsed<ManifestsOptions>(AddManifests, "manifests j --secrets")->secrets);
  EXPECT_EQ(Parsed<ManifestsOptions>(AddManifests, "manifests j -o yaml")->output,
            ManifestsOutput::kYaml);
  EXPECT_FALSE(Parsed<ManifestsOptions>(AddManifests, "manifests"));
  EXPECT_FALSE(Parsed<ManifestsOptions>(AddManifests, "manifests j --output text"));
}

}  // namespace
}  // namespace muster
