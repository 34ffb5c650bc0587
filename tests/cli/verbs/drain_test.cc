#include <gtest/gtest.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

std::optional<steer::DrainOptions> Drain(const std::string& line) {
  return Parsed<steer::DrainOptions>(AddDrain, line);
}

TEST(DrainVerbTest, ANodeIsAWordOrAnOption) {
  for (const char* line : {"drain job.yaml worker-1 --wait", "drain worker-1 job.yaml --wait",
                           "drain job.yaml --node worker-1 --wait"}) {
    const auto options = Drain(line);
    ASSERT_TRUE(options.has_value()) << line;
    EXPECT_EQ(options->node, "worker-1") << line;
    EXPECT_EQ(options->query.target.job_file, "job.yaml") << line;
    EXPECT_TRUE(options->wait) << line;
  }
  EXPECT_EQ(Drain("drain job.yaml")->node, "") << "the whole job";
  EXPECT_FALSE(Drain("drain job.yaml --node ps-0 --wait --no-wait")->wait);
}

}  // namespace
}  // namespace muster
