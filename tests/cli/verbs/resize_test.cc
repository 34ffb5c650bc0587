#include <gtest/gtest.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

std::optional<steer::ResizeOptions> Resize(const std::string& line) {
  return Parsed<steer::ResizeOptions>(AddResize, line);
}

TEST(ResizeVerbTest, ArgumentsFindTheirPlaces) {
  const auto options = Resize("resize ps-0 --state-dir state --memory 512Mi --cpus 1.5");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->node, "ps-0");
  EXPECT_EQ(options->order.query.target.job_file, "");
  EXPECT_EQ(options->order.query.target.state_directory, "state");
  EXPECT_EQ(options->memory, "512Mi");
  EXPECT_EQ(options->cpus, "1.5");
}

TEST(ResizeVerbTest, AJobFileMayComeFirst) {
  const auto options = Resize("resize jobfile ps-3 --cpus 1");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->node, "ps-3");
  EXPECT_EQ(options->order.query.target.job_file, "jobfile");
  EXPECT_FALSE(Resize("resize ./job").has_value());
}

}  // namespace
}  // namespace muster
