#include "collectives/chunk_plan.h"

#include <gmock/gmock.h>

#include <map>

namespace muster::collectives {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const uint32_t kGroupSizes[] = {2, 3, 4, 5, 7, 8, 13, 64};

/// What each member sends to each other fits to what that one expects, chunk by chunk.
void ExpectThatPlansFit(const std::vector<ChunkPlan>& plans) {
  std::map<std::pair<size_t, size_t>, std::vector<ElementRange>> sent, expected;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    for (const PlannedSend& send : plans[rank].sends) sent[{rank, send.peer}].push_back(send.range);
    for (const PlannedReceive& receive : plans[rank].receives) {
      expected[{receive.peer, rank}].push_back(receive.range);
    }
  }
  EXPECT_EQ(sent, expected);
}

/// The final receives are all elements, once each.
void ExpectThatAllBecomeFinal(const ChunkPlan& plan, uint64_t elements) {
  std::map<uint64_t, uint64_t> pieces;
  for (const PlannedReceive& receive : plan.receives) {
    if (!receive.final) continue;
    EXPECT_TRUE(pieces.emplace(receive.range.first, receive.range.count).second);
  }
  uint64_t end = 0;
  for (const auto& [first, count] : pieces) {
    EXPECT_EQ(first, end);
    end = first + count;
  }
  EXPECT_EQ(end, elements);
}

TEST(ChunkPlanTest, RingsFitTogether) {
  for (const uint32_t members : kGroupSizes) {
    for (const uint64_t elements : {64ull, 65ull, 1000ull, 100'003ull}) {
      std::vector<ChunkPlan> plans;
      for (uint32_t rank = 0; rank < members; ++rank) {
        plans.push_back(RingPlan({members, rank, elements, 100}));
        ExpectThatAllBecomeFinal(plans.back(), elements);
      }
      ExpectThatPlansFit(plans);
    }
  }
}

TEST(ChunkPlanTest, ARingSendsTwiceTheBucketAtMost) {
  uint64_t sent = 0;
  for (const PlannedSend& send : RingPlan({8, 3, 80'000, 1000}).sends) sent += send.range.count;
  EXPECT_EQ(sent, 2u * 7 * 10'000);
}

TEST(ChunkPlanTest, TreesFitTogether) {
  for (const uint32_t members : kGroupSizes) {
    std::vector<ChunkPlan> plans;
    for (uint32_t rank = 0; rank < members; ++rank) {
      plans.push_back(TreePlan({members, rank, 10}));
      ExpectThatAllBecomeFinal(plans.back(), 10);
    }
    ExpectThatPlansFit(plans);
  }
}

TEST(ChunkPlanTest, TwoMembersExchangeSmallBuckets) {
  const ChunkPlan plan = TreePlan({2, 1, 10});
  EXPECT_THAT(plan.receives, ElementsAre(PlannedReceive{0, {0, 10}, OnArrival::kAdd, true}));
  EXPECT_THAT(plan.sends, ElementsAre(PlannedSend{0, {0, 10}, true, 0}));
}

TEST(ChunkPlanTest, TheSizeDecides) {
  EXPECT_THAT(PlanOf({1, 0, 10}, 4).receives, IsEmpty());
  EXPECT_THAT(PlanOf({4, 0, 0}, 4).receives, IsEmpty());
  EXPECT_EQ(PlanOf({4, 3, kTreeBytesMax / 4}, 4).sends.size(), 1u) << "a leaf of a tree";
  EXPECT_EQ(PlanOf({4, 3, kTreeBytesMax / 4 + 1}, 4).sends.size(), 6u) << "a ring";
}

TEST(ChunkPlanTest, PeersAreThoseOfRingAndTree) {
  EXPECT_THAT(PeersOf(1, 0), IsEmpty());
  EXPECT_THAT(PeersOf(2, 0), ElementsAre(1));
  EXPECT_THAT(PeersOf(8, 0), ElementsAre(1, 2, 4, 7));
  EXPECT_THAT(PeersOf(8, 6), ElementsAre(4, 5, 7));
  for (const uint32_t members : kGroupSizes) {
    for (uint32_t rank = 0; rank < members; ++rank) {
      const std::vector<uint32_t> peers = PeersOf(members, rank);
      for (const ChunkPlan& plan :
           {RingPlan({members, rank, 1000, 10}), TreePlan({members, rank, 10})}) {
        for (const PlannedSend& send : plan.sends)
          EXPECT_THAT(peers, ::testing::Contains(send.peer));
        for (const PlannedReceive& receive : plan.receives) {
          EXPECT_THAT(peers, ::testing::Contains(receive.peer));
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster::collectives
