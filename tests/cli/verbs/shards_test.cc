#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ChosenOfShards {
  std::optional<ShardsOptions> list;
  std::optional<steer::RetryOptions> retry;
};

ChosenOfShards Shards(const std::string& line) {
  CLI::App app;
  Chosen chosen;
  ChosenOfShards named;
  AddShards(
      &app, &chosen,
      [&named](const ShardsOptions& options) {
        named.list = options;
        return 0;
      },
      [&named](const steer::RetryOptions& options) {
        named.retry = options;
        return 0;
      });
  try {
    app.parse(line);
  } catch (const CLI::ParseError&) {
    return {};
  }
  if (chosen) chosen();
  return named;
}

TEST(ShardsVerbTest, TheyAreListed) {
  const ChosenOfShards named = Shards("shards job.yaml --state failed --limit 5 --offset 2");
  ASSERT_TRUE(named.list.has_value());
  EXPECT_FALSE(named.retry.has_value());
  EXPECT_EQ(named.list->query.target.job_file, "job.yaml");
  EXPECT_EQ(named.list->state, "failed");
  EXPECT_EQ(named.list->limit, 5u);
  EXPECT_EQ(named.list->offset, 2u);
}

TEST(ShardsVerbTest, SomeOrAllAreTriedAgain) {
  const ChosenOfShards some = Shards("shards job.yaml --retry 0/1/17 0/1/18");
  ASSERT_TRUE(some.retry.has_value());
  EXPECT_FALSE(some.list.has_value());
  EXPECT_EQ(some.retry->query.target.job_file, "job.yaml");
  EXPECT_THAT(some.retry->ids, ElementsAre("0/1/17", "0/1/18"));
  const ChosenOfShards all = Shards("shards job.yaml -o json --retry");
  ASSERT_TRUE(all.retry.has_value());
  EXPECT_THAT(all.retry->ids, IsEmpty());
  EXPECT_EQ(all.retry->query.output, OutputFormat::kJson);
}

TEST(ShardsVerbTest, WhatIsBeyondItsBoundsIsRefused) {
  for (const char* line : {"shards --state todo", "shards --limit 0"}) {
    const ChosenOfShards named = Shards(line);
    EXPECT_FALSE(named.list.has_value() || named.retry.has_value()) << line;
  }
}

}  // namespace
}  // namespace muster
