#include "verify/workload/contributions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(ContributionTest, ByHand) {
  const Contribution added = ContributionOf(100, 2);
  EXPECT_EQ(added.bucket_key, 39u);
  EXPECT_EQ(added.wide_key, 100 * kSpread);
  EXPECT_THAT(added.ids, ElementsAre(64));
  EXPECT_THAT(added.buckets, ElementsAre(1, 0, 1, 2));
  EXPECT_EQ(added.wide[0], 1);
  EXPECT_EQ(added.wide[32], -2);  // 3300 mod 5 - 2
  EXPECT_EQ(added.totals[0], 1);
  EXPECT_EQ(added.totals[1], 0);  // 103 mod 9 - 4
  EXPECT_EQ(ContributionOf(257, 0).wide_key, 0u);
  EXPECT_EQ(ContributionOf(61, 0).bucket_key, 0u);
  EXPECT_THAT(ContributionOf(7, kEpochsMax).ids, ElementsAre(1));
}

TEST(ContributionTest, EveryValueIsAWholeNumberAndSmall) {
  for (uint64_t id = 0; id < 5000; id += 7) {
    const Contribution added = ContributionOf(id, id % 8);
    for (const float value : added.wide) {
      EXPECT_EQ(value, std::nearbyint(value));
      EXPECT_LE(std::abs(value), 2);
    }
    EXPECT_GT(added.ids[0], 0);  // a lost record always shows
    EXPECT_LE(added.ids[0], 1 << 21);
  }
}

TEST(ParseIdTest, TakesDigitsOnly) {
  EXPECT_THAT(ParseId("0"), Optional(0u));
  EXPECT_THAT(ParseId("1000000000"), Optional(1000000000u));
  for (const char* line :
       {"", "-1", "1 ", " 1", "1.0", "x", "1000000001", "99999999999999999999"}) {
    EXPECT_FALSE(ParseId(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace muster::verify
