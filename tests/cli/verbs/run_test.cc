#include <gtest/gtest.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

TEST(RunVerbTest, ArgumentsFindTheirPlaces) {
  const auto options =
      Parsed<RunOptions>(AddRun, "run job.yaml --dry-run --retry-failed --no-progress -o json");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->job_file, "job.yaml");
  EXPECT_TRUE(options->dry_run);
  EXPECT_TRUE(options->retry_failed);
  EXPECT_FALSE(options->progress);
  EXPECT_EQ(options->output, OutputFormat::kJson);
}

TEST(RunVerbTest, AJobIsNeededAndPlantedBugsHaveNames) {
  EXPECT_FALSE(Parsed<RunOptions>(AddRun, "run").has_value());
  EXPECT_FALSE(Parsed<RunOptions>(AddRun, "run job.yaml --planted-bug none-such").has_value());
}

}  // namespace
}  // namespace muster
