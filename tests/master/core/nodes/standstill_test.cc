#include "master/core/nodes/standstill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TimePoint SecondOf(int s) {
  return TimePoint(seconds(s));
}

class StandstillTest : public ::testing::Test {
 protected:
  /// A process that its supervisor told of at 100 s.
  Node& Add(const std::string& name, NodeRole role, NodeState state) {
    Node& node = nodes_[name];
    node.record.name = name;
    node.record.role = ToString(role);
    node.record.state = state;
    node.record.told_start = StartNumber(1);
    node.told_at = SecondOf(100);
    return node;
  }
  std::string Text(int s) const { return standstill_.Text(nodes_, SecondOf(s)); }

  Standstill standstill_{DoneSeq(3), SecondOf(100)};
  std::map<std::string, Node> nodes_;
};

TEST_F(StandstillTest, AServerThatNeverCalledIsToldOfAfterTenSeconds) {
  Add("ps-0", NodeRole::kServer, NodeState::kStarting).record.host = "host-a";
  EXPECT_EQ(Text(109), "");
  EXPECT_EQ(Text(114),
            "ps-0 on host-a runs, but has not called for 14 s: it cannot reach the master, is "
            "stopped, hangs, or still loads. `muster logs` shows what it says");
}

TEST_F(StandstillTest, TheSilenceOfAProcessThatHasCalledBeginsWithItsLastCall) {
  Node& node = Add("ps-0", NodeRole::kServer, NodeState::kRunning);
  node.last_heard = SecondOf(150);
  EXPECT_EQ(Text(159), "");
  EXPECT_EQ(Text(160),
            "ps-0 runs, but has not called for 10 s: it is stopped, hangs, or cannot reach the "
            "master any more. `muster logs` shows what it says");
  node.record.state = NodeState::kLost;
  EXPECT_THAT(Text(170), StartsWith("ps-0 runs, but has not called for 20 s: it is stopped"));
  // The call was of the process before this one.
  node.record.state = NodeState::kStarting;
  node.told_at = SecondOf(165);
  EXPECT_EQ(Text(170), "");
}

TEST_F(StandstillTest, TheServerThatIsSilentForLongestIsNamedAndTheOthersAreCounted) {
  Add("ps-0", NodeRole::kServer, NodeState::kRunning).last_heard = SecondOf(120);
  Add("ps-1", NodeRole::kServer, NodeState::kRunning).last_heard = SecondOf(110);
  Add("ps-2", NodeRole::kServer, NodeState::kRunning).last_heard = SecondOf(139);
  EXPECT_THAT(Text(140),
              StartsWith("ps-1 runs, but has not called for 30 s (like 1 other server): it "));
}

TEST_F(StandstillTest, ATrainerMattersOnlyWhileTheJobGetsNowhere) {
  Add("worker-0", NodeRole::kWorker, NodeState::kStarting);
  EXPECT_EQ(Text(159), "");
  EXPECT_THAT(Text(160), StartsWith("worker-0 runs, but has not called for 60 s: it cannot reach"));
  standstill_.See(DoneSeq(4), SecondOf(160));
  EXPECT_EQ(Text(219), "");
  standstill_.See(DoneSeq(4), SecondOf(219));
  EXPECT_THAT(Text(220), StartsWith("worker-0 runs, but has not called for 120 s"));
  Add("ps-0", NodeRole::kServer, NodeState::kStarting);
  EXPECT_THAT(Text(220), StartsWith("ps-0 runs")) << "workers wait for servers";
}

TEST_F(StandstillTest, WhoDoesNotRunOrWasNotToldOfIsNoReason) {
  Add("ps-0", NodeRole::kServer, NodeState::kExited);
  Add("ps-1", NodeRole::kServer, NodeState::kStarting).hold = {
      .start = StartNumber(2), .wait = NodeWait::kUnschedulable, .reason = ""};
  Add("ps-2", NodeRole::kServer, NodeState::kStarting).told_at.reset();
  Add("scaler", NodeRole::kScaler, NodeState::kRunning);
  Add("worker-0", NodeRole::kWorker, NodeState::kRunning).drain.state = DrainState::kDrained;
  EXPECT_EQ(Text(1000), "");
}

class StandstillOfCoreTest : public ::testing::Test, protected testing::CoreFixture {
 protected:
  void Tell(const std::string& name, NodeRole role, uint64_t start) {
    core->ReportNode({.node = name, .role = role, .start = StartNumber(start)}, At());
    Sync();
  }
  std::string Text() const { return core->StandstillText(now); }
};

TEST_F(StandstillOfCoreTest, ANewProcessAndARestartedMasterBeginTheTimeAnew) {
  Start();
  Tell("ps-0", NodeRole::kServer, 1);
  Advance(seconds(9));
  Tell("ps-0", NodeRole::kServer, 2);
  Advance(seconds(9));
  EXPECT_EQ(Text(), "");
  Restart();
  Advance(seconds(9));
  EXPECT_EQ(Text(), "");
  Advance(seconds(1));
  EXPECT_THAT(Text(), HasSubstr("not called for 10 s"));
  Register(5);
  EXPECT_EQ(Text(), "") << "it has called";
  Advance(seconds(30));
  EXPECT_THAT(Text(), HasSubstr("not called for 30 s"));
  // For that long, nothing could be heard.
  StandStill(seconds(21));
  EXPECT_THAT(Text(), HasSubstr("not called for 31 s"));
  EXPECT_THAT(core->Cancel({}, At()), testing::IsOk());
  EXPECT_EQ(Text(), "") << "it is over";
}

TEST_F(StandstillOfCoreTest, ATrainerIsNoReasonWhileOthersGetOn) {
  Start();
  Register(5);
  Tell("worker-1", NodeRole::kWorker, 1);
  const std::vector<ShardGrant> grants = Want(1).grants;
  Advance(seconds(5));
  Done(grants);
  for (int i = 0; i < 56; ++i) {
    Advance(seconds(1));
    ExchangeServer(ServerRequest());
  }
  EXPECT_EQ(Text(), "");
  for (int i = 0; i < 6; ++i) {
    Advance(seconds(1));
    ExchangeServer(ServerRequest());
  }
  EXPECT_THAT(Text(), StartsWith("worker-1 runs, but has not called for 67 s"));
}

}  // namespace
}  // namespace muster
