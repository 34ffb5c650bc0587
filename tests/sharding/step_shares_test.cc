#include "sharding/step_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace muster {
namespace {

using Shares = std::vector<ShareRanges>;

/// How often each minibatch is in a share.
std::vector<int> Coverage(uint32_t minibatches, const Shares& shares) {
  std::vector<int> times(minibatches);
  for (const ShareRanges& share : shares) {
    for (const ShareRange& range : share) {
      for (uint32_t i = 0; i < range.count; ++i) ++times.at(range.first + i);
    }
  }
  return times;
}
std::vector<int> Once(uint32_t minibatches) {
  return std::vector<int>(minibatches, 1);
}

TEST(StepSharesTest, EqualQuotasDifferByOneAtMost) {
  const std::vector<uint64_t> quotas{7, 7, 7};
  EXPECT_EQ(FreshShares(8, quotas), (Shares{{{0, 3}}, {{3, 3}}, {{6, 2}}}));
  EXPECT_EQ(FreshShares(2, quotas), (Shares{{{0, 1}}, {{1, 1}}, {}}));
  EXPECT_EQ(FreshShares(0, quotas), (Shares{{}, {}, {}}));
  EXPECT_EQ(FreshShares(3, std::vector<uint64_t>{0, 0}), (Shares{{{0, 2}}, {{2, 1}}}));
}

TEST(StepSharesTest, SharesFollowTheQuotas) {
  EXPECT_EQ(FreshShares(12, std::vector<uint64_t>{3, 1}), (Shares{{{0, 9}}, {{9, 3}}}));
  // 2.5, 1.67 and 0.83: the largest remainders get what is left.
  EXPECT_EQ(FreshShares(5, std::vector<uint64_t>{3, 2, 1}), (Shares{{{0, 2}}, {{2, 2}}, {{4, 1}}}));
}

TEST(StepSharesTest, SurvivorsKeepTheirMinibatchesAndDivideTheOthers) {
  const Shares after = SharesAfterLoss({{{0, 3}}, {{6, 2}}}, {{3, 3}}, std::vector<uint64_t>{1, 1});
  EXPECT_EQ(after, (Shares{{{0, 5}}, {{5, 3}}}));
  EXPECT_EQ(SharesAfterLoss({{}}, {{2, 1}, {5, 2}}, std::vector<uint64_t>{1}),
            (Shares{{{2, 1}, {5, 2}}}));
}

TEST(StepSharesTest, EveryMinibatchIsInOneShareWhateverDies) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2'000; ++round) {
    const auto minibatches = static_cast<uint32_t>(random() % 40);
    std::vector<uint64_t> quotas(1 + random() % 6);
    for (uint64_t& quota : quotas) quota = random() % 9;
    Shares shares = FreshShares(minibatches, quotas);
    ASSERT_EQ(Coverage(minibatches, shares), Once(minibatches));
    while (shares.size() > 1) {
      const size_t dead = random() % shares.size();
      const ShareRanges gone = shares[dead];
      shares.erase(shares.begin() + static_cast<std::ptrdiff_t>(dead));
      quotas.pop_back();
      const Shares before = shares;
      shares = SharesAfterLoss(shares, gone, quotas);
      ASSERT_EQ(Coverage(minibatches, shares), Once(minibatches));
      for (size_t i = 0; i < shares.size(); ++i) {
        Shares both = {shares[i], before[i]};
        // What it had, it has.
        const std::vector<int> times = Coverage(minibatches, both);
        ASSERT_EQ(std::ranges::count(times, 2), static_cast<int64_t>(CountOf(before[i])));
      }
    }
  }
}

TEST(StepSharesTest, QuotasAreInverseToTheTimes) {
  EXPECT_EQ(Quotas(std::vector<uint64_t>{1'000, 3'000}), (std::vector<uint64_t>{2'000, 666}));
  // Not known: average.
  EXPECT_EQ(Quotas(std::vector<uint64_t>{1'000, 3'000, 0}),
            (std::vector<uint64_t>{2'000, 666, 1'000}));
}

TEST(StepSharesTest, SmallDifferencesAreNoise) {
  const std::vector<uint64_t> equal(3, 1'000);
  EXPECT_EQ(Quotas(std::vector<uint64_t>{100, 125, 110}), equal);
  EXPECT_NE(Quotas(std::vector<uint64_t>{100, 126, 110}), equal);
  EXPECT_EQ(Quotas(std::vector<uint64_t>{0, 0, 0}), equal);
}

TEST(StepSharesTest, NoQuotaIsMoreThanEightTimesAnother) {
  for (const std::vector<uint64_t>& times : {std::vector<uint64_t>{1, 1'000'000},
                                             {~uint64_t{0}, 1, 5},
                                             {~uint64_t{0}, ~uint64_t{0}, 1}}) {
    const std::vector<uint64_t> quotas = Quotas(times);
    const auto [least, most] = std::ranges::minmax(quotas);
    EXPECT_GT(least, 0u);
    EXPECT_LE(most, 8 * least);
    EXPECT_LT(most, uint64_t{1} << 31);
  }
}

}  // namespace
}  // namespace muster
