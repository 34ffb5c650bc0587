#include "master/group_core/stored_states.h"

#include <gtest/gtest.h>

#include "tests/master/group_core/parts.h"

namespace muster {
namespace {

using testing::GroupParts;

class StoredStatesTest : public ::testing::Test {
 protected:
  /// Worker i is a learner that could not read so many pieces; 0: it has not said so.
  void Learn(uint64_t i, uint32_t pieces) {
    GroupExchangeRequest call;
    if (pieces > 0) call.unreadable = {pieces, "cannot open /x"};
    parts.Hear(i, call).standing = GroupStanding::kLearner;
  }
  StoredStates Look() { return StoredStatesOf(parts.books); }
  GroupParts parts;
};

TEST_F(StoredStatesTest, TheOneThatLacksTheFewestPiecesSpeaksForAll) {
  Learn(0, 3);
  Learn(1, 2);
  Learn(2, 2);
  const StoredStates said = Look();
  EXPECT_TRUE(said.forms);
  EXPECT_EQ(said.unreadable, (UnreadableState{2, "cannot open /x"}));
  EXPECT_EQ(said.unreadable_by, "worker-1");
}

TEST_F(StoredStatesTest, WhoHasNotFailedMayStillReadIt) {
  Learn(0, 1);
  Learn(1, 0);
  EXPECT_EQ(Look().unreadable, std::nullopt);
  Learn(1, 1);
  EXPECT_TRUE(Look().unreadable.has_value());
  GroupExchangeRequest waits;
  waits.unreadable = {1, "of another time"};
  parts.Hear(0, waits).standing = GroupStanding::kWaiting;
  EXPECT_EQ(Look().unreadable_by, "worker-1") << "it reads nothing now";
}

TEST_F(StoredStatesTest, MembersHaveTheState) {
  parts.Begin(2);
  parts.membership.Place("");
  Learn(2, 1);
  EXPECT_FALSE(Look().forms);
  EXPECT_EQ(Look().unreadable, std::nullopt);
}

TEST_F(StoredStatesTest, TheFirstMemberThatCannotStoreSpeaksForAll) {
  parts.Begin(2);
  parts.membership.Place("");
  GroupExchangeRequest call = parts.Holding();
  call.unwritten = "no space\nleft";
  parts.Hear(1, call);
  EXPECT_EQ(Look().unwritten, "no space left");
  EXPECT_EQ(Look().unwritten_by, "worker-1");
  parts.Hear(1, parts.Holding());
  EXPECT_EQ(Look().unwritten, "");
  parts.Hear(2, call);
  EXPECT_EQ(Look().unwritten, "") << "it is no member";
}

}  // namespace
}  // namespace muster
