#include "worker_sdk/core/key_set.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

TEST(KeySetTest, KeepsOrderOfFirstAppearanceAndMapsBack) {
  std::vector<uint64_t> keys = {7, 3, 7, 0, 3, ~0ull};
  KeySet set = MakeKeySet(keys);
  EXPECT_THAT(set.unique, ElementsAre(7, 3, 0, ~0ull));
  EXPECT_THAT(set.first, ElementsAre(0, 1, 3, 5));
  EXPECT_THAT(set.inverse, ElementsAre(0, 1, 0, 2, 1, 3));
}

TEST(KeySetTest, NothingRepeatedNeedsNoInverse) {
  std::vector<uint64_t> keys = {5, 4};
  KeySet set = MakeKeySet(keys);
  EXPECT_THAT(set.unique, ElementsAre(5, 4));
  EXPECT_THAT(set.first, IsEmpty());
  EXPECT_THAT(set.inverse, IsEmpty());
  EXPECT_EQ(set.IndexOf(1), 1u);
  EXPECT_THAT(MakeKeySet({}).unique, IsEmpty());
}

TEST(KeyIndexTest, GrowsBeyondWhatItExpected) {
  Rng rng(5);
  for (const size_t expected : {0u, 100u}) {
    KeyIndex index(expected);
    std::vector<uint64_t> keys(20'000);
    for (uint64_t& key : keys) key = rng.Next();
    for (int round = 0; round < 2; ++round) {
      for (uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(index.Insert(keys[i]), i);
    }
    EXPECT_THAT(std::move(index).TakeKeys(), ElementsAreArray(keys));
  }
}

TEST(FirstNonFiniteTest, FindsTheFirst) {
  std::vector<float> values(5000, 1.0f);
  values[10] = std::numeric_limits<float>::max();
  values[11] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(FirstNonFinite(values), std::nullopt);
  values[4097] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FirstNonFinite(values), 4097u);
  values[1500] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(FirstNonFinite(values), 1500u);
}

}  // namespace
}  // namespace muster::sdk
