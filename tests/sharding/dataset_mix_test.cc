#include "sharding/dataset_mix.h"

#include <gmock/gmock.h>

#include <string>

namespace muster {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

/// The datasets of the shards in the order of their turns: "aabab".
std::string OrderOf(const std::vector<DatasetMix>& datasets) {
  std::vector<uint64_t> next(datasets.size());
  std::string order;
  while (true) {
    size_t best = datasets.size();
    for (size_t i = 0; i < datasets.size(); ++i) {
      if (next[i] == datasets[i].shards) continue;
      if (best == datasets.size() ||
          datasets[i].TurnOf(next[i]) < datasets[best].TurnOf(next[best])) {
        best = i;
      }
    }
    if (best == datasets.size()) return order;
    order += static_cast<char>('a' + best);
    ++next[best];
  }
}

TEST(DatasetMixTest, DatasetsRunOutTogether) {
  EXPECT_EQ(OrderOf({{6, 60}, {3, 30}}), "abaabaaba");
  EXPECT_EQ(OrderOf({{2, 20}, {2, 20}}), "abab");
  EXPECT_EQ(OrderOf({{1, 10}, {5, 50}}), "bbabbb");
}

TEST(DatasetMixTest, AWeightIsTheShareWhileAllLast) {
  const std::vector<uint64_t> minibatches = {60, 30};
  EXPECT_THAT(PacesOf(minibatches, std::vector<double>{0, 0}), ElementsAre(1, 1));
  const std::vector<double> paces = PacesOf(minibatches, std::vector<double>{3, 3});
  EXPECT_THAT(paces, ElementsAre(DoubleEq(0.75), DoubleEq(1.5)));
  EXPECT_EQ(OrderOf({{6, 60, paces[0]}, {3, 30, paces[1]}}), "abababaaa");
}

TEST(DatasetMixTest, PositionsCountWhatRunsBefore) {
  for (const std::vector<DatasetMix>& datasets :
       {std::vector<DatasetMix>{{7, 70}, {3, 30}, {0, 0}, {11, 33, 1.7}},
        std::vector<DatasetMix>{{4, 8}, {4, 12}, {4, 4}},
        std::vector<DatasetMix>{{1'000, 5'000, 0.3}, {999, 999, 1.1}}}) {
    std::vector<uint64_t> next(datasets.size());
    uint64_t minibatches = 0;
    for (const char c : OrderOf(datasets)) {
      const auto i = static_cast<size_t>(c - 'a');
      ASSERT_EQ(MinibatchesBefore(datasets, i, next[i]), minibatches) << c << next[i];
      ++next[i];
      minibatches += datasets[i].minibatches / datasets[i].shards;
    }
  }
}

}  // namespace
}  // namespace muster
