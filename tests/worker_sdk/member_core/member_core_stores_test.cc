// States that are stored: what the master hears of those that cannot be read or written.
#include "tests/worker_sdk/member_core/member_core_fixture.h"

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
    ASSERT_TRUE(TakeTransfer().has_value());
  }
};

TEST_F(MemberCoreStoresTest, AStateThatCannotBeReadIsToldAndTriedAgainUntilItIsCopied) {
  Copy();
  core_.Request();
  const UnreadableState lost{1, "cannot open /x"};
  core_.OnStateUnreadable(lost, now_);
  EXPECT_TRUE(core_.request_changed());
  EXPECT_EQ(core_.Request().unreadable, lost);
  now_ += milliseconds(999);
  EXPECT_FALSE(TakeTransfer().has_value());
  now_ += milliseconds(1);
  ASSERT_TRUE(TakeTransfer().has_value());
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

/// What a process lacks that its holders have, or will have.
class MemberCoreSumsTest : public MemberCoreTest {
 protected:
  /// It has the state after step 4, and fetches the sum of step 5.
  void Fetch() {
    GroupExchangeReply learner = Learner(5);
    learner.initial_is_base = false;
    learner.source = StateSource{Label(1, 4), {}, {}};
    learner.keep_sums = true;
    core_.OnReply(learner);
    ASSERT_TRUE(TakeTransfer().has_value());
    core_.OnStateCopied(Label(1, 4));
    ASSERT_EQ(TakeTransfer()->kind, GroupTransfer::Kind::kFetchSum);
  }
  void Again(milliseconds pause) {
    now_ += pause;
    ASSERT_TRUE(TakeTransfer().has_value());
  }
};

TEST_F(MemberCoreSumsTest, ASumThatAHolderStillAppliesIsWaitedFor) {
  Fetch();
  for (int i = 0; i < 10'000; ++i) {
    core_.OnSumLater(now_);
    EXPECT_FALSE(TakeTransfer().has_value());
    Again(milliseconds(20));
  }
  EXPECT_EQ(core_.state(), Label(1, 4));
}

TEST_F(MemberCoreSumsTest, ASumThatNobodyGivesIsGivenUpAfterAWhile) {
  Fetch();
  for (int i = 0; i < 100; ++i) {
    core_.OnTransferFailed(now_);
    Again(milliseconds(99));
  }
  core_.OnSumLater(now_);
  Again(milliseconds(5'000));
  for (int i = 0; i < 100; ++i) {
    core_.OnTransferFailed(now_);
    Again(milliseconds(99));
  }
  EXPECT_EQ(core_.state(), Label(1, 4)) << "one has answered meanwhile";
  now_ += milliseconds(100);
  core_.OnTransferFailed(now_);
  EXPECT_EQ(core_.state(), std::nullopt);
}

}  // namespace
}  // namespace muster::sdk
