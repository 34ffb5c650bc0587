#include "master/core/workers/run_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "base/random.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RunMap, ConsecutiveKeysWithConsecutiveValuesAreOneRunInWhateverOrderTheyCome) {
  for (const std::vector<uint64_t>& order :
       std::vector<std::vector<uint64_t>>{{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}}) {
    RunMap map;
    for (const uint64_t key : order) map.Set(10 + key, 70 + key);
    EXPECT_EQ(map.run_count(), 1u);
    EXPECT_THAT(map.TakeBelow(100), ElementsAre(RunMap::Run{10, 14, 70}));
    EXPECT_TRUE(map.empty());
  }
}

TEST(RunMap, ValuesThatDoNotFollowAreAnotherRun) {
  RunMap map;
  map.Set(1, 5);
  map.Set(2, 7);
  map.Set(3, 8);
  map.Set(0, 5);
  EXPECT_THAT(map.TakeBelow(4),
              ElementsAre(RunMap::Run{0, 1, 5}, RunMap::Run{1, 2, 5}, RunMap::Run{2, 4, 7}));
}

TEST(RunMap, WhatIsBelowALimitIsTakenAndTheRestStays) {
  RunMap map;
  for (uint64_t key = 0; key < 10; ++key) map.Set(key, 100 + key);
  EXPECT_THAT(map.TakeBelow(0), IsEmpty());
  EXPECT_THAT(map.TakeBelow(4), ElementsAre(RunMap::Run{0, 4, 100}));
  EXPECT_EQ(map.Find(3), std::nullopt);
  EXPECT_EQ(map.Find(4), 104u);
}

TEST(RunMap, AgreesWithAMap) {
  Rng random(9);
  RunMap runs;
  std::map<uint64_t, uint64_t> model;
  for (int step = 0; step < 50'000; ++step) {
    const uint64_t key = random.Below(60);
    switch (random.Below(4)) {
      case 0:
      case 1: {
        const uint64_t value = key + 10 * random.Below(2);
        runs.Set(key, value);
        model[key] = value;
        break;
      }
      case 2: {
        const auto found = model.extract(key);
        ASSERT_EQ(runs.Take(key),
                  found.empty() ? std::nullopt : std::optional<uint64_t>(found.mapped()));
        break;
      }
      default:
        if (random.Below(50) != 0) break;
        for (const RunMap::Run& run : runs.TakeBelow(key)) {
          for (uint64_t at = run.begin; at < run.end; ++at) {
            ASSERT_EQ(model.extract(at).mapped(), run.value + (at - run.begin));
          }
        }
        ASSERT_TRUE(model.empty() || model.begin()->first >= key);
    }
    const auto found = model.find(key);
    ASSERT_EQ(runs.Find(key),
              found == model.end() ? std::nullopt : std::optional<uint64_t>(found->second));
  }
}

}  // namespace
}  // namespace muster
