#include "scaler/policy/crash_loop.h"

#include <gmock/gmock.h>

#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CrashLoopTest : public ::testing::Test {
 protected:
  CrashLoopTest() { job_.Add(NodeRole::kWorker, 2, {}, {.memory_bytes = 64 * kMiB}); }
  Proposal EndOnce(EndCause cause, bool progressed) {
    job_.End("worker-1", cause).progressed = progressed;
    const std::vector<Proposal> proposals = job_.Step(&policy_);
    job_.Start("worker-1");
    return proposals.empty() ? Proposal{.action = Action::kDrain} : proposals[0];
  }
  FakeJob job_;
  CrashLoopPolicy policy_{{.ends_max = 3}};
};

TEST_F(CrashLoopTest, EndsInARowWithoutProgressStopTheJob) {
  EXPECT_EQ(EndOnce(EndCause::kProgram, false).action, Action::kRestart);
  EXPECT_EQ(EndOnce(EndCause::kProgram, false).action, Action::kRestart);
  const Proposal stop = EndOnce(EndCause::kProgram, false);
  EXPECT_EQ(stop.action, Action::kStopJob);
  EXPECT_EQ(stop.target, "job");
  EXPECT_EQ(Figure(stop, "ends in a row without progress"), 3);
  EXPECT_THAT(stop.because, HasSubstr("worker-1 ended with exit 1, 3 times in a row"));
  EXPECT_THAT(stop.because, HasSubstr("muster logs worker-1"));
}

TEST_F(CrashLoopTest, ARestartIsAtTheSameSize) {
  const Proposal proposal = EndOnce(EndCause::kProgram, false);
  EXPECT_EQ(proposal.kind, Proposal::Kind::kRepair);
  EXPECT_EQ(std::get<Resources>(proposal.after), (Resources{.memory_bytes = 64 * kMiB}));
}

TEST_F(CrashLoopTest, ProgressBeginsTheCountAnew) {
  // Twice: what is left of a count would add up.
  for (int round = 0; round < 2; ++round) {
    for (const int count : {1, 2}) {
      const Proposal proposal = EndOnce(EndCause::kProgram, count == 1);
      EXPECT_EQ(proposal.action, Action::kRestart);
      EXPECT_EQ(Figure(proposal, "ends in a row without progress"), count);
    }
  }
  EXPECT_EQ(EndOnce(EndCause::kProgram, false).action, Action::kStopJob);
}

TEST_F(CrashLoopTest, TheKeepersCountIsWhatCounts) {
  // Two ends that no policy answers: a trainer that left the loop early, say.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(EndOnce(EndCause::kClean, false).action, Action::kDrain);
  const Proposal stop = EndOnce(EndCause::kProgram, false);
  EXPECT_EQ(stop.action, Action::kStopJob);
  EXPECT_EQ(Figure(stop, "ends in a row without progress"), 3);
}

TEST_F(CrashLoopTest, ThePlatformsKillsAndKillsAtALimitAreNotCounted) {
  for (EndCause cause :
       {EndCause::kPlatform, EndCause::kKernelOutOfMemory, EndCause::kOwnOutOfMemory,
        EndCause::kAsked, EndCause::kNotStarted, EndCause::kDisrupted}) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(EndOnce(cause, false).action, Action::kDrain);
  }
  EXPECT_EQ(EndOnce(EndCause::kProgram, false).action, Action::kRestart);
}

TEST_F(CrashLoopTest, AMachineThatRunsOutIsALoopToo) {
  job_.Node("worker-1").limits = {};
  EXPECT_EQ(EndOnce(EndCause::kPlatform, false).action, Action::kDrain) << "no fault of the node";
  EndOnce(EndCause::kKernelOutOfMemory, false);
  EndOnce(EndCause::kOwnOutOfMemory, false);
  const Proposal stop = EndOnce(EndCause::kKernelOutOfMemory, false);
  EXPECT_EQ(stop.action, Action::kStopJob);
  EXPECT_THAT(stop.because, HasSubstr("the machine ran out"));
  EXPECT_EQ(stop.details, "") << "nothing more is known";
}

TEST_F(CrashLoopTest, WhyTheJobStopsHasWhatTheNodeSaidLast) {
  for (int i = 0; i < 2; ++i) EndOnce(EndCause::kProgram, false);
  NodeEnd& end = job_.End("worker-1", EndCause::kProgram);
  end.meaning = "the program aborted itself";
  end.last_words = "no such file";
  const std::vector<Proposal> proposals = job_.Step(&policy_);
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(proposals[0].details,
            "\n  the program aborted itself.\n  Its last lines:\n    no such file");
}

TEST_F(CrashLoopTest, AnEndToldTwiceCountsOnce) {
  const NodeEnd end = job_.End("worker-1", EndCause::kProgram);
  job_.Step(&policy_);
  job_.view.ends = {end, end, end, end};
  EXPECT_THAT(job_.Step(&policy_), IsEmpty());
}

TEST(PlatformKillTest, SameSizeAndNothingElse) {
  FakeJob job;
  const Resources limits{.cpus = 2, .memory_bytes = 256 * kMiB};
  job.Add(NodeRole::kServer, 1, {}, limits);
  PlatformKillPolicy policy;
  job.End("ps-0", EndCause::kProgram);
  EXPECT_THAT(job.Step(&policy), IsEmpty());
  job.Start("ps-0");
  job.End("ps-0", EndCause::kPlatform);
  const std::vector<Proposal> proposals = job.Step(&policy);
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(proposals[0].action, Action::kRestart);
  EXPECT_EQ(proposals[0].kind, Proposal::Kind::kRepair);
  EXPECT_EQ(std::get<Resources>(proposals[0].after), limits);
  EXPECT_THAT(proposals[0].because, HasSubstr("killed from outside"));
  job.Start("ps-0");
  job.End("ps-0", EndCause::kDisrupted).disruption = Disruption::kPreempted;
  const std::vector<Proposal> again = job.Step(&policy);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(std::get<Resources>(again[0].after), limits);
  EXPECT_THAT(again[0].because, HasSubstr("something of a higher priority took its place"));
}

}  // namespace
}  // namespace muster::scaler
