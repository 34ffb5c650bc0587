#include "ps/core/lane_state.h"

#include <gtest/gtest.h>

namespace muster::ps {
namespace {

using wire::PartCode;

/// Lane 1 of 3 in a job of 8 partitions: it has 1, 4 and 7.
class LaneStateTest : public ::testing::Test {
 protected:
  LaneState lane_{{.partition_count = 8, .lane = 1, .lane_count = 3}};
};

TEST_F(LaneStateTest, HasThePartitionsOfItsLaneAndNoOthers) {
  ASSERT_EQ(lane_.slots().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const PartitionId id(static_cast<uint32_t>(3 * i + 1));
    ASSERT_EQ(lane_.Find(id), &lane_.slots()[i]);
    EXPECT_EQ(lane_.Find(id)->id, id);
    EXPECT_EQ(lane_.Find(id)->index, i);
  }
  for (const uint32_t other : {0u, 2u, 3u, 8u, 10u}) {
    EXPECT_EQ(lane_.Find(PartitionId(other)), nullptr) << other;
  }
}

TEST_F(LaneStateTest, APartIsAdmittedAtTheEpochThatIsServedAlone) {
  EXPECT_EQ(lane_.Admit(4, 0), PartCode::kWrongOwner) << "nothing is there";
  Slot* const slot = lane_.Find(PartitionId(4));
  slot->epoch = OwnerEpoch(5);
  EXPECT_EQ(lane_.Admit(4, 5), PartCode::kWrongOwner) << "still nothing is there";
  slot->load = Load{.id = 1};
  EXPECT_EQ(lane_.Admit(4, 5), PartCode::kRetry) << "it loads";
  EXPECT_EQ(lane_.Admit(4, 4), PartCode::kWrongOwner);
  slot->load.reset();
  slot->partition = std::make_unique<Partition>(PartitionId(4), 1);
  EXPECT_EQ(lane_.Admit(4, 5), PartCode::kOk);
  EXPECT_EQ(lane_.Admit(4, 4), PartCode::kWrongOwner);
  EXPECT_EQ(lane_.Admit(4, 6), PartCode::kWrongOwner);
  EXPECT_EQ(lane_.Admit(3, 5), PartCode::kWrongOwner) << "another lane's";
}

}  // namespace
}  // namespace muster::ps
