#include "cli/join/join_runner.h"

#include <gmock/gmock.h>

#include "tests/scaler/service/fake_host.h"
#include "tests/scaler/service/fake_master.h"

namespace muster {
namespace {

using scaler::testing::FakeHost;
using scaler::testing::FakeMaster;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;
using End = JoinRunner::End;

class JoinRunnerTest : public ::testing::Test {
 protected:
  JoinRunnerTest() {
    place_.node = "far";
    place_.host = "gpu-2";
    place_.run_id = "run-1";
    place_.first_start = 4;
    place_.keeper.finish_wait = {};
    place_.keeper.restarts = {.crash_loop_exits = 2, .backoff_initial = {}, .backoff_max = {}};
  }
  End Run() {
    MasterLink link(master_.MakeClient(), place_.run_id, std::chrono::milliseconds(1), &clock_);
    JoinRunner runner({.place = place_,
                       .host = &host_,
                       .link = &link,
                       .clock = &clock_,
                       .patience = patience_,
                       .ask_run = [this] { return run_; }});
    const End end = runner.Run();
    reason_ = runner.reason();
    return end;
  }
  bool Runs() const { return host_.Has("far") && !host_.nodes.at("far").over; }
  void Exit(int code) {
    host_.Exit({.node = "far", .exit = {.code = code}, .slot = {}, .last_words = "no data"});
  }

  SystemClock clock_;
  FakeMaster master_;
  FakeHost host_;
  JoinPlace place_;
  std::chrono::seconds patience_{600};
  absl::StatusOr<std::string> run_ = "run-1";
  std::string reason_;
};

TEST_F(JoinRunnerTest, AnExitIsToldAndTheNodeIsStartedAgainUntilTheJobIsOver) {
  host_.on_turn = [&] {
    if (!Runs()) return;
    if (host_.nodes.at("far").start == 4) return Exit(1);
    master_.End(JobState::kSucceeded);
  };
  EXPECT_EQ(Run(), End::kJobOver);
  EXPECT_EQ(host_.Count("start far 4"), 1u);
  EXPECT_EQ(host_.Count("start far 5"), 1u);
  const auto told = master_.Told("far", "exited");
  ASSERT_THAT(told, Not(IsEmpty()));
  EXPECT_EQ(told[0].exit_code(), 1u);
  EXPECT_EQ(told[0].host(), "gpu-2") << "so that the scaler knows whose it is";
}

TEST_F(JoinRunnerTest, TheEndNeedsNoAnswerToAnotherQuestion) {
  host_.on_turn = [&] {
    if (!Runs() || !run_.ok()) return;
    // As if the master went right after it had told the end.
    run_ = absl::UnavailableError("gone");
    master_.End(JobState::kSucceeded);
    Exit(0);
  };
  patience_ = std::chrono::seconds(5);
  EXPECT_EQ(Run(), End::kJobOver);
}

TEST_F(JoinRunnerTest, ANodeThatCrashesAgainAndAgainIsGivenUpButNotTheJob) {
  host_.on_turn = [&] {
    if (Runs()) Exit(1);
  };
  EXPECT_EQ(Run(), End::kCrashed);
  EXPECT_THAT(reason_, ::testing::HasSubstr("far"));
  EXPECT_EQ(master_.status().state, JobState::kRunning);
}

TEST_F(JoinRunnerTest, AnotherRunEndsTheNode) {
  run_ = "run-2";
  EXPECT_EQ(Run(), End::kNewRun);
  EXPECT_FALSE(Runs());
}

TEST_F(JoinRunnerTest, WhoseNameAnotherHasTakenEnds) {
  host_.on_turn = [&] {
    if (!Runs()) return;
    // As a process that the other one's has replaced.
    run_ = absl::FailedPreconditionError("another `muster join` has the name far already");
    Exit(1);
  };
  place_.keeper.restarts.crash_loop_exits = 1'000'000;
  EXPECT_EQ(Run(), End::kCrashed);
  EXPECT_THAT(reason_, ::testing::HasSubstr("another `muster join`"));
}

TEST_F(JoinRunnerTest, AMasterThatIsAwayForTooLongEndsTheNode) {
  patience_ = std::chrono::seconds(-1);
  EXPECT_EQ(Run(), End::kAway);
  EXPECT_FALSE(Runs());
}

}  // namespace
}  // namespace muster
