#include "master/core/servers/restore_trouble.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Change = RestoreTrouble::Change;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(100)};

TEST(RestoreTroubleTest, BeginsWithAnErrorAndEndsWhenNothingWaits) {
  RestoreTrouble trouble;
  EXPECT_EQ(trouble.Take({"", 3}, kStart), Change::kNone) << "it loads, and says nothing";
  EXPECT_EQ(trouble.Take({"disk full", 0}, kStart), Change::kNone) << "nothing waits for it";
  EXPECT_FALSE(trouble.active());
  EXPECT_EQ(trouble.Take({"no file x", 2}, kStart), Change::kBegan);
  EXPECT_EQ(trouble.Text(), "2 of its partitions cannot be restored: no file x");
  EXPECT_EQ(trouble.Take({"", 2}, kStart + milliseconds(500)), Change::kNone);
  EXPECT_EQ(trouble.Text(), "2 of its partitions cannot be restored: no file x");
  EXPECT_EQ(trouble.lasts(), seconds(0)) << "it says no error: another process has yet to try";
  EXPECT_EQ(trouble.Take({"no file x", 2}, kStart + milliseconds(900)), Change::kNone);
  EXPECT_EQ(trouble.lasts(), milliseconds(400));
  EXPECT_EQ(trouble.Take({"no file x", 0}, kStart + seconds(1)), Change::kOver);
  EXPECT_FALSE(trouble.active());
  EXPECT_EQ(trouble.Take({"no file x", 1}, kStart + seconds(9)), Change::kBegan);
  EXPECT_EQ(trouble.lasts(), seconds(0));
}

TEST(RestoreTroubleTest, AnyPartitionThatIsRestoredCountsAsGettingOn) {
  RestoreTrouble trouble;
  TimePoint now = kStart;
  trouble.Take({"no file x", 3}, now);
  for (int i = 0; i < 10; ++i) trouble.Take({"no file x", 3}, now += seconds(1));
  EXPECT_EQ(trouble.lasts(), seconds(10));
  trouble.Take({"no file x", 2}, now += seconds(1));
  EXPECT_EQ(trouble.lasts(), seconds(0));
  trouble.Take({"no file x", 3}, now += seconds(1));
  EXPECT_EQ(trouble.lasts(), seconds(1)) << "another process has to start again";
}

TEST(RestoreTroubleTest, SilenceIsNoAttempt) {
  RestoreTrouble trouble;
  trouble.Take({"no file x", 1}, kStart);
  trouble.Take({"no file x", 1}, kStart + seconds(3600));
  EXPECT_EQ(trouble.lasts(), seconds(1));
}

}  // namespace
}  // namespace muster
