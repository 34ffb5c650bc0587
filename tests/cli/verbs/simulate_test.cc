#include <gmock/gmock.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(SimulateVerbTest, ArgumentsFindTheirPlaces) {
  const auto options = Parsed<simulate::SimulateOptions>(
      AddSimulate,
      "simulate --history /nonexistent --job /nonexistent/job.yaml --policy hang --policy "
      "out-of-memory --dry-run --from 10m --to 1h -o json");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->history, "/nonexistent");
  EXPECT_EQ(options->job_file, "/nonexistent/job.yaml");
  EXPECT_THAT(options->policies, ElementsAre("hang", "out-of-memory"));
  EXPECT_TRUE(options->dry_run);
  EXPECT_EQ(options->from, "10m");
  EXPECT_EQ(options->to, "1h");
  EXPECT_EQ(options->output, OutputFormat::kJson);
}

}  // namespace
}  // namespace muster
