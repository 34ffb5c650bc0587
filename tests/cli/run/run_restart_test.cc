#include <gmock/gmock.h>

#include "proto/messages/slot_file.h"
#include "tests/cli/run/run_command_fixture.h"

/// What `muster run` and its scaler do when something dies.
namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RunCommandTest, CrashLoopNamesTheNodeItsExitAndItsLastLines) {
  WriteJob("echo cannot load the model; exit 3",
           "  restarts: {crashLoopExits: 3, backoffInitial: 10ms}\n");
  Program run(RunArguments(), folder_.path());
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.out(),
              AllOf(HasSubstr("worker-0 ended with exit 3, 3 times"), HasSubstr("exit 3"),
                    HasSubstr("cannot load the model"), HasSubstr("muster logs worker-0")));
  EXPECT_THAT(run.err(),
              AllOf(HasSubstr("giving up: worker-0 ended with exit 3, 3 times"),
                    HasSubstr("decision worker-0: worker-0 ended with exit 3; it starts again"),
                    Not(HasSubstr("cannot load the model"))))
      << "the summary says it";
  EXPECT_EQ(Summary()["state"], "failed");
  EXPECT_EQ(Summary()["restarts"]["worker"], 2);
  EXPECT_THAT(Read("reports"), HasSubstr("worker-0 exited signal=0 code=3"));
}

TEST_F(RunCommandTest, KilledNodesComeBackAndTheMasterHearsOfItsOwnDeath) {
  WriteJob(kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  ASSERT_TRUE(Reported("ps-0 started"));
  ::kill(PidOf("ps-0"), SIGKILL);
  EXPECT_TRUE(Reported("ps-0 exited signal=9"));
  EXPECT_TRUE(Reported("ps-0 started signal=0 code=0 token=0 restarts=1"));
  ::kill(PidOf("master"), SIGKILL);
  EXPECT_TRUE(Reported("master exited signal=9"));
  EXPECT_TRUE(Reported("master started signal=0 code=0 token=0 restarts=1"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(Summary()["restarts"]["master"], 1);
  EXPECT_EQ(Summary()["restarts"]["ps"], 1);
}

TEST_F(RunCommandTest, KilledScalerIsReplacedAndTheNodesGoOn) {
  WriteJob(kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  ASSERT_TRUE(Reported("ps-0 started"));
  ASSERT_TRUE(Reported("scaler started"));
  const pid_t worker = PidOf("worker-0");
  const pid_t server = PidOf("ps-0");
  ::kill(PidOf("scaler"), SIGKILL);
  EXPECT_TRUE(Reported("scaler exited signal=9"));
  EXPECT_TRUE(Reported("scaler started signal=0 code=0 token=0 restarts=1"));
  // The new one looks after those that it has not started.
  ::kill(server, SIGKILL);
  EXPECT_TRUE(Reported("ps-0 started signal=0 code=0 token=0 restarts=1"));
  EXPECT_EQ(PidOf("worker-0"), worker);
  EXPECT_EQ(::kill(worker, 0), 0);
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(Summary()["restarts"]["scaler"], 1);
  EXPECT_EQ(Summary()["restarts"]["ps"], 1);
}

/// After a job's end, only its processes remain to be ended. A wait for a scaler that cannot know
/// of the end would take 45 s (RunSupervisorOptions::finish_wait).
TEST_F(RunCommandTest, MasterAndScalerThatDieAfterTheJobsEndHoldNobodyUp) {
  WriteJob("trap '' TERM; echo $$ > pids; while :; do sleep 0.05; done");
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  ASSERT_TRUE(Reported("ps-0 started"));
  ASSERT_TRUE(Reported("scaler started"));
  std::vector<OwnedFd> held = HoldPids(1);
  for (const char* node : {"scaler", "master", "ps-0"}) {
    held.push_back(OpenProcess(PidOf(node)));
  }
  Write("succeed", "");
  ASSERT_TRUE(Eventually([&] { return run.err().find("] succeeded") != std::string::npos; }));
  for (const size_t node : {1, 2}) {
    EXPECT_TRUE(SignalProcess(held[node], SIGKILL));
  }
  EXPECT_EQ(run.Wait(40'000), 0) << run.err();
  EXPECT_EQ(Summary()["state"], "succeeded");
  ExpectGone(held);
}

TEST_F(RunCommandTest, ServerThatRefusesItsInputIsStartedOnce) {
  Write("refuse-ps", "");
  WriteJob("exec sleep 1000");
  Program run(RunArguments(), folder_.path());
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(run.out(), HasSubstr("ps-0 refused to start:\n    --threads 0: a server needs one"));
  EXPECT_EQ(Summary()["reason"], "ps-0 refused to start:\n    --threads 0: a server needs one");
}

TEST_F(RunCommandTest, LostServerIsKilledAndStartedAgain) {
  WriteJob(kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("ps-0 started"));
  Write("lost", "");
  ASSERT_TRUE(Reported("ps-0 exited signal=9"));
  std::filesystem::remove(folder_.File("lost"));
  EXPECT_TRUE(Reported("ps-0 started signal=0 code=0 token=0 restarts=1"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

TEST_F(RunCommandTest, CrashIsChargedToTheShardInTheSlotFile) {
  // magic, incarnation, one loop with token 77 and 5 minibatches, zeros; little-endian.
  WriteJob(
      fmt::format("if [ $MUSTER_START = 1 ]; then {{ printf "
                  "'MSRETSUM\\1\\0\\0\\0\\0\\0\\0\\0\\115\\0\\0\\0"
                  "\\0\\0\\0\\0\\5\\0\\0\\0\\0\\0\\0\\0'; head -c {} /dev/zero; }} "
                  "> $MUSTER_SLOT_FILE; kill -SEGV $$; fi; {}",
                  sizeof(SlotFile) - 32, kWaitForSuccess));
  Program run(RunArguments(), folder_.path());
  EXPECT_TRUE(Reported("worker-0 exited signal=11 code=0 token=77"));
  EXPECT_TRUE(Reported("worker-0 started signal=0 code=0 token=0 restarts=1"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

}  // namespace
}  // namespace muster
