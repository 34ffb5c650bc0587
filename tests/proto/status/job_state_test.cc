#include "proto/status/job_state.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// Journal and wire have the numbers.
TEST(JobStateTest, NumbersAndWordsStay) {
  struct Row {
    JobState state;
    int number;
    std::string_view word;
    bool terminal;
  };
  for (const Row& row :
       {Row{JobState::kUnknown, 0, "unknown", false}, Row{JobState::kRunning, 1, "running", false},
        Row{JobState::kDraining, 2, "draining", false}, Row{JobState::kDrained, 3, "drained", true},
        Row{JobState::kSucceeded, 4, "succeeded", true}, Row{JobState::kFailed, 5, "failed", true},
        Row{JobState::kCancelled, 6, "cancelled", true},
        Row{JobState::kStopped, 7, "stopped", true}}) {
    EXPECT_EQ(static_cast<int>(row.state), row.number);
    EXPECT_EQ(ToString(row.state), row.word);
    EXPECT_EQ(WordsOf(row.state)[static_cast<size_t>(row.number)], row.word);
    EXPECT_EQ(IsTerminal(row.state), row.terminal) << row.word;
  }
}

}  // namespace
}  // namespace muster
