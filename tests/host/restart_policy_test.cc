#include "host/restart_policy.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using std::chrono::milliseconds;
using Progress = RestartPolicy::Progress;

TEST(RestartPolicyTest, FirstAtOnceThenDoublingUpToTheMaximum) {
  RestartPolicy policy({.crash_loop_exits = 100,
                        .backoff_initial = milliseconds(500),
                        .backoff_max = milliseconds(3'000)});
  for (int expected : {0, 500, 1000, 2000, 3000, 3000}) {
    const RestartPolicy::Decision decision = policy.OnExit(Progress::kNone);
    EXPECT_FALSE(decision.crash_loop);
    EXPECT_EQ(decision.delay, milliseconds(expected));
  }
  for (int i = 0; i < 80; ++i) {
    EXPECT_EQ(policy.OnExit(Progress::kNone).delay, milliseconds(3'000));
  }
}

TEST(RestartPolicyTest, CrashLoopAfterExitsInARowWithoutProgress) {
  RestartPolicy policy({.crash_loop_exits = 3});
  EXPECT_FALSE(policy.OnExit(Progress::kNone).crash_loop);
  EXPECT_FALSE(policy.OnExit(Progress::kNone).crash_loop);
  const RestartPolicy::Decision decision = policy.OnExit(Progress::kNone);
  EXPECT_TRUE(decision.crash_loop);
  EXPECT_EQ(decision.exits, 3u);
}

TEST(RestartPolicyTest, ProgressStartsTheCountAgain) {
  RestartPolicy policy({.crash_loop_exits = 2});
  for (int i = 0; i < 20; ++i) {
    const RestartPolicy::Decision decision = policy.OnExit(Progress::kMade);
    EXPECT_FALSE(decision.crash_loop);
    EXPECT_EQ(decision.delay, milliseconds(0));
  }
  EXPECT_TRUE(policy.OnExit(Progress::kNone).crash_loop);
}

TEST(RestartPolicyTest, GoesOnWhereAnotherStopped) {
  RestartPolicy before({.crash_loop_exits = 3});
  before.OnExit(Progress::kNone);
  before.OnExit(Progress::kNone);
  RestartPolicy after({.crash_loop_exits = 3}, before.exits());
  EXPECT_TRUE(after.OnExit(Progress::kNone).crash_loop);
}

TEST(RestartPolicyTest, AnExcusedExitCountsNotAndNoneIsExcusedTwice) {
  RestartPolicy policy({}, 2);
  policy.Excuse();
  EXPECT_EQ(policy.exits(), 1u);
  policy.Excuse();
  policy.Excuse();
  EXPECT_EQ(policy.exits(), 0u);
}

TEST(RestartPolicyTest, ProgressThatWasSeenBeforeTheExitCounts) {
  RestartPolicy policy({.crash_loop_exits = 2}, 1);
  policy.OnProgress();
  EXPECT_EQ(policy.exits(), 0u);
  EXPECT_EQ(policy.OnExit(Progress::kNone).delay, milliseconds(0));
}

TEST(RestartPolicyTest, EndlessIsNeverACrashLoopHoweverManyCame) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  RestartPolicy policy(RestartPolicy::Endless({.backoff_max = milliseconds(3'000)}), kMost - 3);
  for (int i = 0; i < 10; ++i) {
    const RestartPolicy::Decision decision = policy.OnExit(Progress::kNone);
    EXPECT_FALSE(decision.crash_loop);
    EXPECT_EQ(decision.delay, milliseconds(3'000));
  }
  EXPECT_FALSE(policy.OnExit(Progress::kMade).crash_loop);
  EXPECT_EQ(policy.exits(), 1u);
}

TEST(RestartPolicyTest, ACrashLoopHasAtLeastOneExit) {
  for (const uint32_t exits : {0u, 1u}) {
    RestartPolicy policy({.crash_loop_exits = exits});
    EXPECT_TRUE(policy.OnExit(Progress::kMade).crash_loop);
  }
}

}  // namespace
}  // namespace muster
