#include "worker_sdk/core/first_alone.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

const LeaseToken kA = LeaseToken::FromValue(1), kB = LeaseToken::FromValue(2);

class FirstAloneTest : public ::testing::Test {
 protected:
  static constexpr FirstAlone::ThreadNumber me_ = 1, you_ = 2;
  TimePoint now_{std::chrono::seconds(100)};
};

TEST_F(FirstAloneTest, AFirstProcessTakesWhatItCan) {
  FirstAlone gate(false);
  gate.Took(me_, kA, now_);
  EXPECT_TRUE(gate.MayTake(you_, now_));
}

TEST_F(FirstAloneTest, OthersWaitUntilAShardIsCompleted) {
  FirstAlone gate(true);
  EXPECT_TRUE(gate.MayTake(you_, now_));
  gate.Took(me_, kA, now_);
  EXPECT_FALSE(gate.MayTake(you_, now_));
  gate.Left(kB, FirstAlone::How::kCompleted);
  EXPECT_FALSE(gate.MayTake(you_, now_)) << "another's";
  gate.Left(kA, FirstAlone::How::kGivenUp);
  EXPECT_TRUE(gate.MayTake(you_, now_)) << "who comes next is alone again";
  gate.Took(you_, kB, now_);
  EXPECT_FALSE(gate.MayTake(me_, now_));
  gate.Left(kB, FirstAlone::How::kCompleted);
  EXPECT_TRUE(gate.over());
  gate.Took(me_, kA, now_);
  EXPECT_TRUE(gate.MayTake(you_, now_));
}

TEST_F(FirstAloneTest, AThreadThatTakesSeveralDoesNotWaitForItself) {
  FirstAlone gate(true);
  gate.Took(me_, kA, now_);
  EXPECT_TRUE(gate.MayTake(me_, now_));
  gate.Took(me_, kB, now_);
  EXPECT_TRUE(gate.MayTake(you_, now_));
}

TEST_F(FirstAloneTest, LoopsThatWaitForEachOtherGoOnAfterAWhile) {
  FirstAlone gate(true);
  gate.Took(me_, kA, now_);
  now_ += FirstAlone::kAloneMax - std::chrono::nanoseconds(1);
  EXPECT_FALSE(gate.MayTake(you_, now_));
  now_ += std::chrono::nanoseconds(1);
  EXPECT_TRUE(gate.MayTake(you_, now_));
  gate.Took(you_, kB, now_);
  EXPECT_TRUE(gate.over());
}

}  // namespace
}  // namespace muster::sdk
