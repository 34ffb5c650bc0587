#include "scaler/policy/out_of_memory.h"

#include <gmock/gmock.h>

#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Resources kLimits{.cpus = 1, .memory_bytes = 512 * kMiB};

class OutOfMemoryTest : public ::testing::Test {
 protected:
  OutOfMemoryTest() { job_.Add(NodeRole::kServer, 2, {}, kLimits).Add(NodeRole::kWorker, 2); }
  Proposal Only() {
    const std::vector<Proposal> proposals = job_.Step(&policy_);
    EXPECT_EQ(proposals.size(), 1u);
    return proposals.empty() ? Proposal{} : proposals[0];
  }
  uint64_t MemoryAfter(const Proposal& proposal) {
    return std::get<Resources>(proposal.after).memory_bytes;
  }
  FakeJob job_;
  OutOfMemoryPolicy policy_;
};

TEST_F(OutOfMemoryTest, AKernelKillGetsHalfAsMuchAgain) {
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  const Proposal proposal = Only();
  EXPECT_EQ(proposal.action, Action::kRestart);
  EXPECT_EQ(proposal.kind, Proposal::Kind::kRepair);
  EXPECT_EQ(proposal.target, "ps-0");
  EXPECT_EQ(std::get<Resources>(proposal.before), kLimits);
  EXPECT_EQ(std::get<Resources>(proposal.after),
            (Resources{.cpus = 1, .memory_bytes = 768 * kMiB}));
  EXPECT_EQ(Figure(proposal, "memory limit"), 512.0 * kMiB);
  EXPECT_THAT(proposal.because, HasSubstr("killed by the kernel at its memory limit of 512 MiB"));
}

TEST_F(OutOfMemoryTest, AnOwnKillCountsFromThePeakWhichMayLieAboveTheLimit) {
  job_.End("ps-0", EndCause::kOwnOutOfMemory).memory_peak_bytes = 600 * kMiB;
  const Proposal proposal = Only();
  EXPECT_EQ(MemoryAfter(proposal), 900 * kMiB);
  EXPECT_THAT(proposal.because, HasSubstr("the watch over its memory"));
}

TEST_F(OutOfMemoryTest, WhereTheClusterHadNoRoomForAsMuchItIsHalfOfTheWay) {
  NodeView& node = job_.Node("ps-0");
  const auto refuse = [&] {
    node.limits.memory_bytes = 768 * kMiB;
    node.state = NodeState::kWaiting;
    node.wait = NodeWait::kUnschedulable;
    job_.Step(&policy_);
    node.limits = kLimits;
    job_.Start("ps-0");
    job_.view.taken = {{.policy = "no-room", .target = "ps-0", .action = Action::kRestart}};
    job_.view.taken[0].at = job_.view.now;
    job_.Step(&policy_);
  };
  refuse();
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  const Proposal proposal = Only();
  EXPECT_EQ(MemoryAfter(proposal), 640 * kMiB);
  EXPECT_THAT(proposal.because, HasSubstr("640 MiB, because there was no room for more"));
  // Too little to be worth it: it asks for more again, and waits.
  job_.Start("ps-0");
  node.limits.memory_bytes = 736 * kMiB;
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  EXPECT_EQ(MemoryAfter(Only()), 1'104 * kMiB);
  refuse();
  job_.view.now += std::chrono::hours(1);
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  EXPECT_EQ(MemoryAfter(Only()), 768 * kMiB) << "by now there may be room";
}

TEST_F(OutOfMemoryTest, NothingElseIsItsBusiness) {
  for (EndCause cause :
       {EndCause::kProgram, EndCause::kPlatform, EndCause::kAsked, EndCause::kClean}) {
    job_.End("ps-0", cause);
    EXPECT_THAT(job_.Step(&policy_), IsEmpty()) << ToString(cause);
    job_.Start("ps-0");
  }
  // Without a limit the machine was short: no limit mends that.
  job_.End("worker-0", EndCause::kKernelOutOfMemory);
  EXPECT_THAT(job_.Step(&policy_), IsEmpty());
}

TEST_F(OutOfMemoryTest, AKillToldTwiceIsAnsweredOnce) {
  const NodeEnd end = job_.End("ps-0", EndCause::kKernelOutOfMemory);
  Only();
  job_.view.ends = {end, end};
  EXPECT_THAT(job_.Step(&policy_), IsEmpty());
}

TEST_F(OutOfMemoryTest, EveryKillRaisesAgainUpToTheBoundThenTheJobStops) {
  job_.Node("ps-0").max.memory_bytes = 1024 * kMiB;
  for (uint64_t expected : {768, 1024}) {
    job_.End("ps-0", EndCause::kKernelOutOfMemory);
    const Proposal proposal = Only();
    EXPECT_EQ(MemoryAfter(proposal), expected * kMiB);
    job_.CarryOut(proposal);
  }
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  const Proposal stop = Only();
  EXPECT_EQ(stop.action, Action::kStopJob);
  EXPECT_EQ(stop.target, "job");
  for (const char* part :
       {"ps-0", "limit of 1 GiB", "peak 1 GiB", "the job file's maximum for ps nodes allows",
        "raise spec.replicaSpecs.ps.resources.max.memory, or share the weights out"}) {
    EXPECT_THAT(stop.because, HasSubstr(part));
  }
}

TEST_F(OutOfMemoryTest, AtTheBoundALifeThatTrainedIsFollowedByAnother) {
  job_.Node("ps-0").max.memory_bytes = kLimits.memory_bytes;
  for (int life = 0; life < 3; ++life) {
    job_.Tick();
    job_.End("ps-0", EndCause::kKernelOutOfMemory).progressed = true;
    const Proposal again = Only();
    EXPECT_EQ(again.action, Action::kRestart);
    EXPECT_EQ(again.kind, Proposal::Kind::kRepair);
    EXPECT_EQ(std::get<Resources>(again.after), kLimits);
    EXPECT_THAT(again.because, AllOf(HasSubstr("the job made progress meanwhile"),
                                     HasSubstr("raise spec.replicaSpecs.ps.resources.max.memory")));
    job_.CarryOut(again);
  }
  job_.End("ps-0", EndCause::kKernelOutOfMemory).progressed = true;
  EXPECT_EQ(Only().action, Action::kStopJob) << "the others made progress, but it did nothing";
}

TEST_F(OutOfMemoryTest, BudgetAndMachineAreBoundsToo) {
  job_.view.budget.memory_bytes = 1200 * kMiB;  // 512 of them are the other server's
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  EXPECT_EQ(MemoryAfter(Only()), 688 * kMiB);
  job_.Start("ps-0");
  job_.view.budget.memory_bytes = 1024 * kMiB;
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  const Proposal stop = Only();
  EXPECT_EQ(stop.action, Action::kStopJob);
  EXPECT_THAT(stop.because, AllOf(HasSubstr("the rest of the job's budget"),
                                  HasSubstr("raise spec.budget.memory, or")));
}

TEST_F(OutOfMemoryTest, AWorkerThatMayNotHaveMoreIsTheTrainersAffair) {
  job_.view.machine.memory_bytes = 2048 * kMiB;
  job_.Node("worker-0").limits.memory_bytes = 1024 * kMiB;
  job_.End("worker-0", EndCause::kKernelOutOfMemory);
  EXPECT_THAT(Only().because,
              EndsWith("run on a machine with more memory, or let the trainer use less"));
}

TEST_F(OutOfMemoryTest, ALittleMoreThanALimitIsNoAnswer) {
  // Raised by a twentieth meanwhile: it would be killed again.
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  job_.Node("ps-0").limits.memory_bytes = 540 * kMiB;
  EXPECT_EQ(MemoryAfter(Only()), 768 * kMiB);
  job_.Node("ps-0").limits = kLimits;
  job_.Start("ps-0");
  job_.Node("ps-0").max.memory_bytes = 530 * kMiB;
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  EXPECT_EQ(Only().action, Action::kStopJob);
}

TEST_F(OutOfMemoryTest, ALimitRaisedMeanwhileIsNotRaisedTwice) {
  job_.End("ps-0", EndCause::kKernelOutOfMemory);
  job_.Node("ps-0").limits.memory_bytes = 768 * kMiB;
  const Proposal proposal = Only();
  EXPECT_EQ(MemoryAfter(proposal), 768 * kMiB);
  EXPECT_EQ(proposal.action, Action::kRestart);
}

}  // namespace
}  // namespace muster::scaler
