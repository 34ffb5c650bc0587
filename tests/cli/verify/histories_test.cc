#include "cli/verify/histories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "verify/workload/history.h"

namespace muster::verify {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;
using testing::TempDir;

constexpr Workload kInput{.records = 10, .epochs = 1};

class HistoriesTest : public ::testing::Test {
 protected:
  void Append(const std::string& name, const std::string& text) {
    std::ofstream(folder_.File(name), std::ios::app) << text;
  }
  const TempDir folder_;
};

TEST_F(HistoriesTest, FilesOfAllProcessesAreSummedUp) {
  Append("worker-0-1.history", FormatAttempt({1, {"numbers", 0, 1}, 0, 1, {0, 1, 2}}) +
                                   FormatApplied({2, 1, 77}) + "applied 3 ");
  Append("worker-0-2.history", FormatAttempt({5, {"numbers", 0, 1}, 0, 1, {0, 1, 2}}));
  Append("worker-1-1.history", FormatApplied({4, 2, 78}));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Histories histories, ReadHistories(folder_.path(), kInput));
  EXPECT_EQ(histories.attempts.attempts(), 6u);
  EXPECT_EQ(histories.attempts.redelivered(), 3u);
  ASSERT_EQ(histories.steps.all().size(), 2u);
  EXPECT_EQ(histories.steps.all()[1].first, (ProcessName{"worker-1", 1}));
  EXPECT_EQ(histories.steps.all()[1].second, (AppliedStep{4, 2, 78}));
}

TEST_F(HistoriesTest, WhatIsNoHistory) {
  Append("worker-0-1.history", "something\n");
  EXPECT_THAT(ReadHistories(folder_.path(), kInput),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("worker-0-1.history:1:")));
  EXPECT_THAT(ReadHistories(folder_.File("none"), kInput),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  for (const char* name : {"worker.history", "worker-x.history", "worker-1x.history"}) {
    EXPECT_THAT(ProcessOfFile(name), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
}

TEST_F(HistoriesTest, GroupIsWholeWhenTheNewestOfAllGotFurther) {
  GroupWatch watch(folder_.path(), 2);
  Append("worker-0-1.history", FormatApplied({1, 7, 0}));
  Append("worker-1-1.history", FormatApplied({1, 9, 0}));
  EXPECT_FALSE(watch.IsWhole()) << "step 9 was there before";
  Append("worker-0-1.history", FormatApplied({2, 10, 0}));
  EXPECT_FALSE(watch.IsWhole()) << "worker-1 is at step 9";
  Append("worker-1-1.history", FormatApplied({2, 10, 0}));
  EXPECT_TRUE(watch.IsWhole());
  Append("worker-1-2.history", FormatAttempt({3, {"numbers", 0, 1}, 0, 1, {0}}));
  EXPECT_FALSE(watch.IsWhole()) << "the newest process of worker-1 has applied nothing";
  Append("worker-1-2.history", FormatApplied({4, 11, 0}).substr(0, 12));
  EXPECT_FALSE(watch.IsWhole()) << "half a line";
}

TEST(GroupWatchTest, FolderThatIsNotThere) {
  GroupWatch watch("/no/such/folder", 1);
  EXPECT_FALSE(watch.IsWhole());
}

}  // namespace
}  // namespace muster::verify
