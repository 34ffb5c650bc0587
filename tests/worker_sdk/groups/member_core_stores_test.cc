// States that are stored: what the master hears of those that cannot be read or written.
#include "tests/worker_sdk/groups/member_core_fixture.h"

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;

class MemberCoreStoresTest : public MemberCoreTest {
 protected:
  void Copy() {
    GroupExchangeReply learner = Learner(4);
    learner.initial_is_base = false;
    learner.source = StateSource{Label(1, 4), {{0, 8, 5, "at/0"}}, {GroupMember()}};
    core_.OnReply(learner);
    ASSERT_TRUE(core_.TakeTransfer(now_).has_value());
  }
};

TEST_F(MemberCoreStoresTest, AStateThatCannotBeReadIsToldAndTriedAgainUntilItIsCopied) {
  Copy();
  core_.Request();
  const UnreadableState lost{1, "cannot open /x"};
  core_.OnStateUnreadable(lost, now_);
  EXPECT_TRUE(core_.request_changed());
  EXPECT_EQ(core_.Request().unreadable, lost);
  EXPECT_FALSE(core_.TakeTransfer(now_ + milliseconds(999)).has_value());
  ASSERT_TRUE(core_.TakeTransfer(now_ + milliseconds(1'000)).has_value());
  EXPECT_EQ(core_.Request().unreadable, lost) << "it is not known better yet";
  core_.OnStateCopied(Label(1, 4));
  EXPECT_EQ(core_.Request().unreadable, std::nullopt);
}

TEST_F(MemberCoreStoresTest, APieceThatCannotBeStoredIsToldUntilOneIs) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  core_.Request();
  core_.OnNotStored("no space");
  EXPECT_TRUE(core_.request_changed());
  EXPECT_EQ(core_.Request().unwritten, "no space");
  core_.OnStored(Label(1, 0), "at/0");
  EXPECT_EQ(core_.Request().unwritten, "");
}

}  // namespace
}  // namespace muster::sdk
