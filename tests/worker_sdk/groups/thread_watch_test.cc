#include "worker_sdk/groups/thread_watch.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;

TEST(ThreadWatchTest, AThreadIsSilentSinceTheQuestionThatItHasNotAnswered) {
  const TimePoint start{std::chrono::seconds(10)};
  ThreadWatch watch;
  EXPECT_EQ(watch.SilentFor(start), milliseconds(0));
  const auto first = watch.Ask(start);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(watch.Ask(start + milliseconds(500)), std::nullopt) << "one question at a time";
  EXPECT_EQ(watch.SilentFor(start + milliseconds(700)), milliseconds(700));
  watch.Answered(*first);
  EXPECT_EQ(watch.SilentFor(start + milliseconds(900)), milliseconds(0));
  const auto second = watch.Ask(start + milliseconds(1'000));
  ASSERT_TRUE(second.has_value());
  watch.Answered(*first);
  EXPECT_EQ(watch.SilentFor(start + milliseconds(1'200)), milliseconds(200)) << "an old answer";
  watch.Answered();
  EXPECT_EQ(watch.SilentFor(start + milliseconds(1'300)), milliseconds(0));
}

TEST(ThreadWatchTest, QuestionsArePutWithPauses) {
  const TimePoint start{std::chrono::seconds(10)};
  ThreadWatch watch;
  watch.Answered(*watch.Ask(start));
  EXPECT_EQ(watch.Ask(start + ThreadWatch::kPause - milliseconds(1)), std::nullopt);
  EXPECT_TRUE(watch.Ask(start + ThreadWatch::kPause).has_value());
}

}  // namespace
}  // namespace muster::sdk
