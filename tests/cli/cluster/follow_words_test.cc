#include "cli/cluster/follow_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FollowWords, TheSummaryIsTheEndOfTheLog) {
  const std::string log =
      "ads: a line of progress\nads: drained after 0:05\n  old\nmore\n"
      "ads: succeeded after 1:02\n  train epoch 1\n  restarts: none\n";
  EXPECT_EQ(SummaryIn(log, "ads"),
            "ads: succeeded after 1:02\n  train epoch 1\n  restarts: none\n");
  EXPECT_EQ(SummaryIn(log, "other"), "");
  EXPECT_EQ(SummaryIn("", "ads"), "");
  EXPECT_EQ(SummaryIn("ads: failed after 0:01", "ads"), "ads: failed after 0:01");
}

TEST(FollowWords, TheOutcomeIsTheRunsWordElseItsCode) {
  using State = RunOutcome::State;
  EXPECT_EQ(OutcomeOf({.outcome = "drained", .exit_code = 3}).state, State::kDrained);
  EXPECT_EQ(OutcomeOf({.outcome = "stopped", .exit_code = 3}).state, State::kStopped);
  EXPECT_EQ(OutcomeOf({.outcome = "failed", .exit_code = 4}).state, State::kCancelled);
  EXPECT_EQ(OutcomeOf({.outcome = "failed", .exit_code = 2}).state, State::kBadInput);
  EXPECT_EQ(OutcomeOf({.outcome = "failed", .exit_code = 137}).state, State::kFailed);
  EXPECT_EQ(OutcomeOf({.outcome = "succeeded"}).state, State::kSucceeded);
  EXPECT_EQ(OutcomeOf({.why = "words", .outcome = "failed"}).reason, "words");
}

TEST(FollowWords, OptionsFindTheSameJob) {
  EXPECT_EQ(OptionsFor("ads", {.on = "kubernetes"}), "--job ads --on kubernetes");
  EXPECT_EQ(OptionsFor("ads", {.context = "c", .ns = "team", .kubeconfig = "/k"}),
            "--job ads --on kubernetes --context c --namespace team --kubeconfig /k");
}

TEST(FollowWords, OnlyNewsIsSaid) {
  const JobLook none;
  const JobLook pending{.stage = JobStage::kPending, .pod = "ads-a", .why = "no node has room"};
  const JobLook running{.stage = JobStage::kRunning, .pod = "ads-a"};
  EXPECT_THAT(NewsOf(none, pending, "", "kubectl d"), HasSubstr("ads-a: no node has room"));
  EXPECT_EQ(NewsOf(pending, pending, "", "kubectl d"), "");
  JobLook other = pending;
  other.why = "image error";
  other.is_stuck = true;
  EXPECT_THAT(
      NewsOf(pending, other, "", "kubectl d"),
      HasSubstr("until somebody changes it; `kubectl d` takes the job away, and its state"));
  EXPECT_THAT(NewsOf(pending, running, "", "kubectl d"), HasSubstr("ads-a runs"));
  EXPECT_EQ(NewsOf(running, running, "", "kubectl d"), "");
  JobLook moved = running;
  moved.pod = "ads-b";
  EXPECT_THAT(NewsOf(running, moved, "", "kubectl d"), HasSubstr("ads-b runs"));
  moved.former = "ads-a: failed: evicted by its node";
  EXPECT_THAT(NewsOf(running, moved, "", "kubectl d"),
              HasSubstr("ads-b runs; the one before was ads-a: failed: evicted"));
  const JobLook ended{.stage = JobStage::kEnded, .outcome = "failed", .exit_code = 1};
  EXPECT_THAT(NewsOf(running, ended, "--job ads", "kubectl d"),
              HasSubstr("`muster logs --job ads`"));
  EXPECT_THAT(NewsOf(running, none, "", "kubectl d"), HasSubstr("the same command makes it again"));
}

TEST(FollowWords, WhoLeavesHearsHowTheJobIsEnded) {
  const std::string runs =
      LeavingText({.stage = JobStage::kRunning}, "ads", "--job ads", "kubectl d");
  EXPECT_THAT(runs,
              AllOf(HasSubstr("`muster drain --job ads`"), HasSubstr("`muster cancel --job ads`")));
  // Nothing answers a verb while the pod does not run.
  const std::string waits =
      LeavingText({.stage = JobStage::kPending}, "ads", "--job ads", "kubectl d");
  EXPECT_THAT(waits, AllOf(HasSubstr("`kubectl d`"), Not(HasSubstr("muster cancel"))));
}

}  // namespace
}  // namespace muster::cluster
