#include "master/core/epochs/epoch_thinning.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Those that are left of epochs 0, 1, ... if each is thinned out when there are too many.
std::vector<EpochIndex> LeftOf(uint32_t epochs, size_t most) {
  std::vector<EpochIndex> left;
  for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
    left.emplace_back(epoch);
    if (left.size() <= most) continue;
    for (const EpochIndex old : OldEpochs(left, most)) std::erase(left, old);
  }
  return left;
}

TEST(EpochThinningTest, TheNewestStayAndACurve) {
  EXPECT_THAT(OldEpochs({}, 8), IsEmpty());
  EXPECT_THAT(LeftOf(8, 8), ::testing::SizeIs(8));
  std::vector<uint32_t> left;
  for (const EpochIndex epoch : LeftOf(9, 8)) left.push_back(epoch.value());
  EXPECT_THAT(left, ElementsAre(0, 4, 5, 6, 7, 8));
}

TEST(EpochThinningTest, HoweverManyThereAreAFewStay) {
  for (const size_t most : {1, 2, 3, 4, 9, 1'000}) {
    for (const uint32_t epochs : {1'001, 5'000, 20'000}) {
      const std::vector<EpochIndex> left = LeftOf(epochs, most);
      ASSERT_LE(left.size(), most);
      // In full.
      for (size_t i = 0; i < (most + 1) / 2; ++i) {
        ASSERT_EQ(left[left.size() - 1 - i].value(), epochs - 1 - i) << most;
      }
      if (most < 1'000) continue;
      // The curve has no gap that is much larger than others, and begins with the first epoch.
      ASSERT_EQ(left[0], EpochIndex(0));
      uint32_t widest = 0;
      for (size_t i = 1; i < left.size(); ++i) {
        widest = std::max(widest, left[i].value() - left[i - 1].value());
      }
      EXPECT_LE(widest, epochs / 100 + 1);
      EXPECT_GT(left.size(), most / 2 + most / 8);
    }
  }
}

}  // namespace
}  // namespace muster
