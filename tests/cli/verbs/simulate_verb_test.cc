#include "cli/verbs/simulate_verb.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(SimulateVerbTest, ArgumentsFindTheirPlaces) {
  CLI::App app;
  simulate::SimulateOptions options;
  int exit_code = -1;
  AddSimulateVerb(&app, &options, &exit_code);
  app.parse(
      "simulate --history /nonexistent --job /nonexistent/job.yaml --policy hang --policy "
      "out-of-memory --dry-run --from 10m --to 1h -o json");
  EXPECT_EQ(options.history, "/nonexistent");
  EXPECT_EQ(options.job_file, "/nonexistent/job.yaml");
  EXPECT_THAT(options.policies, ElementsAre("hang", "out-of-memory"));
  EXPECT_TRUE(options.dry_run);
  EXPECT_EQ(options.from, "10m");
  EXPECT_EQ(options.to, "1h");
  EXPECT_EQ(options.output, OutputFormat::kJson);
  EXPECT_GT(exit_code, 0);
}

}  // namespace
}  // namespace muster
