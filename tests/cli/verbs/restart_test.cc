#include <gtest/gtest.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

std::optional<steer::RestartOptions> Restart(const std::string& line) {
  return Parsed<steer::RestartOptions>(AddRestart, line);
}

TEST(RestartVerbTest, ArgumentsFindTheirPlaces) {
  const auto options =
      Restart("restart ps-0 job.yaml --reason 'two words' --wait --timeout 7 -o json");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->node, "ps-0");
  EXPECT_EQ(options->order.query.target.job_file, "job.yaml");
  EXPECT_EQ(options->order.reason, "two words");
  EXPECT_TRUE(options->order.wait);
  EXPECT_EQ(options->order.timeout_s, 7u);
  EXPECT_EQ(options->order.query.output, OutputFormat::kJson);
}

TEST(RestartVerbTest, NodeAndJobChangePlacesWhenOnlyTheSecondIsANode) {
  const auto options = Restart("restart my.job worker-12");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->node, "worker-12");
  EXPECT_EQ(options->order.query.target.job_file, "my.job");
}

TEST(RestartVerbTest, WhatIsMissingOrBeyondItsBoundsIsRefused) {
  for (const char* line : {"restart", "restart job.yaml", "restart ps-0 --timeout 0"}) {
    EXPECT_FALSE(Restart(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace muster
