#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "tests/cli/verbs/parsed.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using muster::testing::StatusIs;
using scaler::ResizeNode;
using scaler::RestartNode;
using steer::GivenOrder;
using ::testing::HasSubstr;

/// The order of a line; none if it is refused.
std::optional<GivenOrder> Ordered(const std::string& line) {
  return Parsed<GivenOrder>(AddOrders, line);
}

TEST(OrderVerbsTest, ArgumentsFindTheirPlaces) {
  const auto given =
      Ordered("restart ps-0 job.yaml --reason 'two words' --wait --timeout 7 -o json");
  ASSERT_TRUE(given.has_value());
  EXPECT_EQ(std::get<RestartNode>(*given->order).node, "ps-0");
  EXPECT_EQ(given->options.query.target.job_file, "job.yaml");
  EXPECT_EQ(given->options.reason, "two words");
  EXPECT_TRUE(given->options.wait);
  EXPECT_EQ(given->options.timeout_s, 7u);
  EXPECT_EQ(given->options.query.output, OutputFormat::kJson);
  const auto scale = Ordered("scale job.yaml --workers 4");
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ(std::get<scaler::ScaleWorkers>(*scale->order).workers, 4u);
  EXPECT_FALSE(scale->options.wait);
}

TEST(OrderVerbsTest, NodeAndJobChangePlacesWhenOnlyTheSecondIsANode) {
  const auto restart = Ordered("restart my.job worker-12");
  ASSERT_TRUE(restart.has_value());
  EXPECT_EQ(std::get<RestartNode>(*restart->order).node, "worker-12");
  EXPECT_EQ(restart->options.query.target.job_file, "my.job");
  const auto resize = Ordered("resize jobfile ps-3 --cpus 1");
  ASSERT_TRUE(resize.has_value());
  EXPECT_EQ(std::get<ResizeNode>(*resize->order).node, "ps-3");
  EXPECT_EQ(resize->options.query.target.job_file, "jobfile");
}

TEST(OrderVerbsTest, TheNodeMayBeAnOption) {
  for (const char* line : {"restart job.yaml --node ps-0", "restart --node ps-0 job.yaml",
                           "restart ps-0 --node ps-0 job.yaml --no-wait"}) {
    const auto restart = Ordered(line);
    ASSERT_TRUE(restart.has_value()) << line;
    EXPECT_EQ(std::get<RestartNode>(*restart->order).node, "ps-0");
    EXPECT_EQ(restart->options.query.target.job_file, "job.yaml");
    EXPECT_FALSE(restart->options.wait);
  }
  EXPECT_FALSE(Ordered("restart ps-1 --node ps-0").has_value());
  EXPECT_FALSE(Ordered("restart a.yaml b.yaml --node ps-0").has_value());
}

TEST(OrderVerbsTest, ResizeReadsAmountsAsJobFilesHaveThem) {
  const auto both = Ordered("resize ps-0 --state-dir state --memory 1.5Gi --cpus 500m");
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(std::get<ResizeNode>(*both->order).memory_bytes, uint64_t{1536} << 20);
  EXPECT_EQ(std::get<ResizeNode>(*both->order).cpus, 0.5);
  EXPECT_EQ(both->options.query.target.state_directory, "state");
  const auto cpus = Ordered("resize ps-0 --cpus 2");
  ASSERT_TRUE(cpus.has_value());
  EXPECT_EQ(std::get<ResizeNode>(*cpus->order).cpus, 2);
  EXPECT_EQ(std::get<ResizeNode>(*cpus->order).memory_bytes, std::nullopt)
      << "it was not requested";
}

TEST(OrderVerbsTest, ALineThatSaysNoOrderIsAnError) {
  for (const auto& [line, what] : {std::pair("resize ps-0", "--memory 512Mi"),
                                   {"resize ps-0 --cpus=-1", "--cpus"},
                                   {"resize ps-0 --memory lots", "'lots'"}}) {
    const auto given = Ordered(line);
    ASSERT_TRUE(given.has_value()) << line;
    EXPECT_THAT(given->order, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
    EXPECT_EQ(steer::OrderCommand(*given), kExitUsage) << line;
  }
}

TEST(OrderVerbsTest, WhatIsMissingOrBeyondItsBoundsIsRefused) {
  for (const char* line : {"restart", "restart job.yaml", "restart ps-0 --timeout 0",
                           "resize ./job", "scale --workers 0"}) {
    EXPECT_FALSE(Ordered(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace muster
