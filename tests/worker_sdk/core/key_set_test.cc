#include "worker_sdk/core/key_set.h"

#include <cmath>
#include <limits>
#include <map>

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

TEST(GradientSumTest, RepeatedKeysAndCallsAddUp) {
  GradientSum sum(2);
  sum.Add(MakeKeySet(std::vector<uint64_t>{1, 2, 1}), std::vector<float>{1, 10, 2, 20, 3, 30});
  EXPECT_THAT(sum.keys(), ElementsAre(1, 2));
  EXPECT_THAT(sum.gradients(), ElementsAre(4, 40, 2, 20));
  sum.Add(MakeKeySet(std::vector<uint64_t>{1, 2}), std::vector<float>{1, 1, 1, 1});
  sum.Add(MakeKeySet(std::vector<uint64_t>{3, 2}), std::vector<float>{5, 6, 7, 8});
  EXPECT_THAT(sum.keys(), ElementsAre(1, 2, 3));
  EXPECT_THAT(sum.gradients(), ElementsAre(5, 41, 10, 29, 5, 6));
}

TEST(GradientSumTest, DenseTensorIsPaddedToWholeBlocks) {
  GradientSum sum(4);
  sum.AddDense(std::vector<float>{1, 2, 3, 4, 5, 6});
  sum.AddDense(std::vector<float>{1, 1, 1, 1, 1, 1});
  EXPECT_THAT(sum.keys(), ElementsAre(0, 1));
  EXPECT_THAT(sum.gradients(), ElementsAre(2, 3, 4, 5, 6, 7, 0, 0));
}

TEST(GradientSumTest, ADenseTensorHasNoMoreBlocksThanItNeeds) {
  for (const auto& [elements, blocks] : {std::pair(1, 1), {4, 1}, {5, 2}, {8, 2}, {9, 3}}) {
    GradientSum sum(4);
    sum.AddDense(std::vector<float>(static_cast<size_t>(elements), 1));
    EXPECT_EQ(sum.keys().size(), static_cast<size_t>(blocks)) << elements;
    EXPECT_EQ(sum.gradients().size(), 4 * sum.keys().size());
  }
}

TEST(GradientSumTest, RandomCallsEqualAMap) {
  Rng rng(11);
  for (int round = 0; round < 50; ++round) {
    GradientSum sum(3);
    std::map<uint64_t, std::vector<float>> expected;
    for (int call = 0; call < 3; ++call) {
      std::vector<uint64_t> keys(rng.Below(200));
      for (uint64_t& key : keys) key = rng.Below(60) * 0x100000001ull;
      std::vector<float> gradients(keys.size() * 3);
      for (float& value : gradients) value = static_cast<float>(rng.Below(9));
      for (size_t i = 0; i < keys.size(); ++i) {
        std::vector<float>& row = expected[keys[i]];
        row.resize(3);
        for (size_t c = 0; c < 3; ++c) row[c] += gradients[i * 3 + c];
      }
      sum.Add(MakeKeySet(keys), gradients);
    }
    ASSERT_EQ(sum.keys().size(), expected.size());
    for (size_t i = 0; i < sum.keys().size(); ++i) {
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(sum.gradients()[i * 3 + c], expected[sum.keys()[i]][c]);
      }
    }
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
