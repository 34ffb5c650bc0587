#include "master/core/grant_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(GrantGateTest, ClosesAtALimitAndOpensWellBelowIt) {
  GrantGate gate({.done_bytes = 1'000, .failure_bytes = 100}, UINT64_MAX);
  EXPECT_FALSE(gate.Look({999, 99}).has_value());
  EXPECT_TRUE(gate.open());
  const auto closed = gate.Look({1'000, 0});
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->kind.word(), "granting-stopped");
  EXPECT_THAT(closed->text, HasSubstr("DONE shards have 1000 bytes, but the limit is 1000"));
  EXPECT_TRUE(gate.too_much_done());
  EXPECT_FALSE(gate.Look({2'000, 0}).has_value()) << "told once";
  EXPECT_FALSE(gate.Look({750, 0}).has_value());
  EXPECT_FALSE(gate.open()) << "it does not flutter";
  const auto opened = gate.Look({749, 0});
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->kind.word(), "granting-resumed");
  EXPECT_TRUE(gate.open());
}

TEST(GrantGateTest, TooManyFailedShardsCloseItUntilTheyAreTriedAgain) {
  GrantGate gate(CoreLimits(), 2);
  EXPECT_FALSE(gate.Look({.failed_shards = 2}).has_value());
  const auto closed = gate.Look({.failed_shards = 3});
  ASSERT_TRUE(closed.has_value());
  EXPECT_THAT(closed->text,
              HasSubstr("3 shards FAILED, and spec.training.failedShardsMax is 2. No more shards"));
  EXPECT_TRUE(gate.too_many_failures());
  EXPECT_TRUE(gate.Look({.failed_shards = 2}).has_value());
  EXPECT_TRUE(gate.open());
}

TEST(GrantGateTest, EitherLimitHoldsItClosed) {
  GrantGate gate({.done_bytes = 1'000, .failure_bytes = 100}, UINT64_MAX);
  EXPECT_TRUE(gate.Look({1'000, 0}).has_value());
  const auto failures = gate.Look({1'000, 100});
  ASSERT_TRUE(failures.has_value());
  EXPECT_THAT(failures->text, HasSubstr("failures of shards have 100 bytes, but the limit is 100"));
  EXPECT_FALSE(gate.Look({1'000, 0}).has_value());
  EXPECT_FALSE(gate.open());
  EXPECT_TRUE(gate.Look({0, 0}).has_value());
  EXPECT_TRUE(gate.open());
}

}  // namespace
}  // namespace muster
