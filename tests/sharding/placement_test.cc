#include "sharding/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace muster {
namespace {

using Owners = std::vector<std::optional<ServerId>>;

std::vector<ServerId> Servers(std::initializer_list<uint32_t> ids) {
  std::vector<ServerId> result;
  for (const uint32_t id : ids) result.emplace_back(id);
  return result;
}

TEST(PlacementTest, AtTheStartServersGetRunsOfNeighbours) {
  const auto placed = Place({}, Servers({0, 1, 2}), 8);
  EXPECT_EQ(placed, Servers({0, 0, 0, 1, 1, 1, 2, 2}));
  // Lanes are partition mod lanes: every lane of every server has work.
  const auto two = Place({}, Servers({0, 1}), 256);
  std::map<std::pair<uint32_t, uint32_t>, int> lanes;
  for (uint32_t partition = 0; partition < 256; ++partition) {
    ++lanes[{two[partition].value(), partition % 2}];
  }
  EXPECT_EQ(lanes.size(), 4u);
  for (const auto& [lane, count] : lanes) EXPECT_EQ(count, 64);
}

TEST(PlacementTest, PartitionsOfAServerThatIsGoneGoToTheOthersAndNothingElseMoves) {
  const Owners current = {ServerId(0), ServerId(1), ServerId(2),
                          ServerId(0), ServerId(1), ServerId(2)};
  EXPECT_EQ(Place(current, Servers({0, 2}), 6), Servers({0, 0, 2, 0, 2, 2}));
}

TEST(PlacementTest, MoreServersTakeOnlyTheirShare) {
  const Owners current(8, ServerId(0));
  EXPECT_EQ(Place(current, Servers({0, 1}), 8), Servers({0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(PlacementTest, FewerPartitionsThanServersLeavesServersEmpty) {
  EXPECT_EQ(Place({}, Servers({4, 5, 6}), 2), Servers({4, 5}));
}

/// The fewest moves possible: owners keep up to their quota, and the servers that own most now have
/// the larger quotas.
uint32_t FewestMoves(const Owners& current, const std::vector<ServerId>& servers) {
  std::vector<uint32_t> owned;
  for (const ServerId server : servers) {
    owned.push_back(static_cast<uint32_t>(std::count(current.begin(), current.end(), server)));
  }
  std::sort(owned.rbegin(), owned.rend());
  const auto partitions = static_cast<uint32_t>(current.size());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < owned.size(); ++i) {
    const uint32_t quota = partitions / owned.size() + (i < partitions % owned.size() ? 1 : 0);
    kept += std::min(owned[i], quota);
  }
  return partitions - kept;
}

TEST(PlacementTest, RandomPlacementsAreBalancedWithTheFewestMoves) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    const auto partitions = static_cast<uint32_t>(1 + rng.Below(60));
    Owners current(partitions);
    for (auto& owner : current) {
      if (rng.Below(8) != 0) owner = ServerId(static_cast<uint32_t>(rng.Below(6)));
    }
    std::vector<ServerId> servers;
    for (uint32_t id = 0; id < 8; ++id) {
      if (rng.Below(2) == 0) servers.emplace_back(id);
    }
    if (servers.empty()) servers.emplace_back(3);

    const auto placed = Place(current, servers, partitions);
    std::map<ServerId, uint32_t> load;
    for (const ServerId server : servers) load[server] = 0;
    uint32_t moved = 0;
    for (uint32_t partition = 0; partition < partitions; ++partition) {
      ASSERT_TRUE(load.contains(placed[partition])) << "seed " << seed;
      ++load[placed[partition]];
      if (current[partition] != placed[partition]) ++moved;
    }
    const auto [low, high] = std::minmax_element(
        load.begin(), load.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_LE(high->second - low->second, 1u) << "seed " << seed;
    ASSERT_EQ(moved, FewestMoves(current, servers)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster
