#include <gtest/gtest.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

std::optional<steer::ExplainOptions> Explain(const std::string& line) {
  return Parsed<steer::ExplainOptions>(AddExplain, line);
}

TEST(ExplainVerbTest, ArgumentsFindTheirPlaces) {
  auto options = Explain("explain #12 job.yaml");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->event, "#12");
  options = Explain("explain job.yaml 13 -o json");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->event, "13");
  EXPECT_EQ(options->query.target.job_file, "job.yaml");
  EXPECT_EQ(options->query.output, OutputFormat::kJson);
}

TEST(ExplainVerbTest, WithoutAnEventItIsRefused) {
  for (const char* line : {"explain", "explain job.yaml"}) {
    EXPECT_FALSE(Explain(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace muster
