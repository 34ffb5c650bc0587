#include "proto/messages/table_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using ::testing::HasSubstr;

TableSpec Table(const std::string& name, uint32_t dim) {
  TableSpec table;
  table.name = name;
  table.dim = dim;
  return table;
}

TEST(TableSpecTest, TheTextShowsWhatDiffers) {
  TableSpec table = Table("embedding", 16);
  table.id = TableId(3);
  table.optimizer = AdagradSpec{.learning_rate = 0.05f};
  const std::string base = ToString(table);
  EXPECT_THAT(base, HasSubstr("'embedding'"));
  EXPECT_THAT(base, HasSubstr("dim=16"));
  EXPECT_THAT(base, HasSubstr("sparse"));
  EXPECT_THAT(base, HasSubstr("adagrad(learning_rate=0.05"));

  TableSpec other = table;
  other.shape = {128, 64};
  EXPECT_THAT(ToString(other), HasSubstr("dense [128, 64]"));
  other = table;
  other.initializer = {.kind = InitializerSpec::Kind::kUniform, .a = -0.25f, .b = 0.5f};
  EXPECT_THAT(ToString(other), HasSubstr("uniform(-0.25, 0.5)"));
  other = table;
  other.schedule = {.kind = ScheduleSpec::Kind::kCosine, .warmup_steps = 7, .period_steps = 9};
  EXPECT_THAT(ToString(other), HasSubstr("cosine(warmup_steps=7, period_steps=9"));
  other = table;
  other.warm_start_directory = "/models/a";
  EXPECT_THAT(ToString(other), HasSubstr("/models/a"));
}

TEST(TableSpecTest, EveryInitializerAndScheduleShowsItsParameters) {
  using Initial = InitializerSpec::Kind;
  const std::pair<InitializerSpec, std::string> initializers[] = {
      {{.kind = Initial::kZero}, "initializer=zero "},
      {{.kind = Initial::kConstant, .a = 0.5f}, "initializer=constant(0.5) "},
      {{.kind = Initial::kNormal, .a = 1, .b = 2}, "initializer=normal(mean=1, deviation=2) "},
  };
  for (const auto& [initializer, text] : initializers) {
    TableSpec table = Table("t", 1);
    table.initializer = initializer;
    EXPECT_THAT(ToString(table), HasSubstr(text));
  }
  using Rate = ScheduleSpec::Kind;
  const std::pair<ScheduleSpec, std::string> schedules[] = {
      {{.kind = Rate::kConstant, .warmup_steps = 3}, "schedule=constant(warmup_steps=3)"},
      {{.kind = Rate::kStep, .warmup_steps = 3, .period_steps = 4, .decay = 0.5f},
       "schedule=step(warmup_steps=3, period_steps=4, decay=0.5)"},
      {{.kind = Rate::kCosine, .warmup_steps = 3, .period_steps = 4, .final_factor = 0.25f},
       "schedule=cosine(warmup_steps=3, period_steps=4, final_factor=0.25)"},
  };
  for (const auto& [schedule, text] : schedules) {
    TableSpec table = Table("t", 1);
    table.schedule = schedule;
    EXPECT_THAT(ToString(table), ::testing::EndsWith(text)) << "without a warm start";
  }
}

TEST(TableSpecTest, AWarmStartShowsFolderAndContentAsFarAsTheyAreKnown) {
  TableSpec table = Table("t", 1);
  table.warm_start_directory = "/models/a";
  EXPECT_THAT(ToString(table), ::testing::EndsWith(" warm_start='/models/a'"));
  table.warm_start_hash = "aa";
  EXPECT_THAT(ToString(table), ::testing::EndsWith(" warm_start='/models/a' (content aa)"));
  table.warm_start_directory.clear();
  EXPECT_THAT(ToString(table), ::testing::EndsWith(" warm_start='' (content aa)"));
}

TEST(TableSpecTest, EveryOptimizerShowsItsParameters) {
  TableSpec table = Table("t", 1);
  const std::vector<std::pair<OptimizerSpec, std::string>> cases = {
      {SumSpec{}, "optimizer=sum "},
      {SgdSpec{.weight_decay = 0.5f}, "weight_decay=0.5"},
      {MomentumSpec{.nesterov = true}, "nesterov=true"},
      {RowwiseAdagradSpec{.initial_accumulator = 0.5f}, "rowwise_adagrad(learning_rate=0.01, in"},
      {AdamSpec{.beta1 = 0.75f}, "beta1=0.75"},
      {AdamWSpec{.weight_decay = 0.25f}, "adamw("},
      {FtrlSpec{.lambda1 = 2}, "lambda1=2"},
  };
  for (const auto& [optimizer, text] : cases) {
    table.optimizer = optimizer;
    EXPECT_THAT(ToString(table), HasSubstr(text));
  }
}

TEST(TableSpecTest, BlocksOfADenseTensorAreRoundedUp) {
  TableSpec table = Table("w", 64);
  EXPECT_EQ(DenseBlockCount(table), 0u);  // sparse
  table.shape = {10, 13};
  EXPECT_EQ(DenseBlockCount(table), 3u);
  table.shape = {64, 2};
  EXPECT_EQ(DenseBlockCount(table), 2u);
  table.shape = {5, 0};
  EXPECT_EQ(DenseBlockCount(table), 0u);
  // Saturates instead of wrapping to something small.
  table.shape = {uint64_t{1} << 40, uint64_t{1} << 40};
  EXPECT_EQ(DenseBlockCount(table), std::numeric_limits<uint64_t>::max() / 64 + 1);
  table.dim = 0;
  EXPECT_EQ(DenseBlockCount(table), 0u);
}

}  // namespace
}  // namespace muster
