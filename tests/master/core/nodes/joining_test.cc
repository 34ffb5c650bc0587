#include "master/core/nodes/joining.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

class JoiningTest : public ::testing::Test {
 protected:
  JoiningTest() {
    options_.servers = 4;
    options_.servers_joined = 2;
  }
  absl::StatusOr<Joining> Judge(NodeRole role, const std::string& name) {
    return JudgeJoin({.role = role, .name = name, .host = "b"}, NodeTable(nodes_, 100), options_);
  }
  void Add(const std::string& name, NodeState state, const std::string& host) {
    NodeRecord& record = nodes_[name];
    record.name = name;
    record.state = state;
    record.host = host;
    record.told_start = StartNumber(3);
    record.start = StartNumber(4);
  }

  CoreOptions options_;
  std::map<std::string, NodeRecord> nodes_;
};

TEST_F(JoiningTest, TheServersWithTheHighestNumbersJoin) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Joining third, Judge(NodeRole::kServer, "ps-2"));
  EXPECT_EQ(third.name, "ps-2");
  EXPECT_EQ(third.first_start, StartNumber(1));
  for (const char* name : {"ps-1", "ps-4", "ps-x", ""}) {
    EXPECT_THAT(Judge(NodeRole::kServer, name),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("ps-2 to ps-3")))
        << name;
  }
}

TEST_F(JoiningTest, TheOnlyServerThatJoinsNeedsNoName) {
  options_.servers_joined = 1;
  MUSTER_ASSERT_OK_AND_ASSIGN(const Joining last, Judge(NodeRole::kServer, ""));
  EXPECT_EQ(last.name, "ps-3");
  options_.servers_joined = 0;
  EXPECT_THAT(Judge(NodeRole::kServer, "ps-3"),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("ps.joined")));
}

TEST_F(JoiningTest, WorkersHaveNamesThatTheScalerDoesNotGive) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Joining worker, Judge(NodeRole::kWorker, "worker-gpu2"));
  EXPECT_EQ(worker.name, "worker-gpu2");
  for (const char* name : {"", "worker-0", "worker-07", "ps-3", "master", "scaler"}) {
    EXPECT_THAT(Judge(NodeRole::kWorker, name),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("a name of its own")))
        << name;
  }
  EXPECT_THAT(Judge(NodeRole::kScaler, "x"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("only a worker or a ps")));
}

TEST_F(JoiningTest, ANameOfALiveNodeElsewhereIsTaken) {
  Add("far", NodeState::kRunning, "c");
  EXPECT_THAT(Judge(NodeRole::kWorker, "far"),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("runs on c")));
}

TEST_F(JoiningTest, StartNumbersGoOn) {
  Add("lost", NodeState::kLost, "c");
  MUSTER_ASSERT_OK_AND_ASSIGN(const Joining lost, Judge(NodeRole::kWorker, "lost"));
  EXPECT_EQ(lost.first_start, StartNumber(5));
  Add("same", NodeState::kRunning, "b");
  MUSTER_ASSERT_OK_AND_ASSIGN(const Joining same, Judge(NodeRole::kWorker, "same"));
  EXPECT_EQ(same.first_start, StartNumber(5));
}

class JoinersTest : public JoiningTest {
 protected:
  absl::StatusOr<Joining> Join(const std::string& name, const std::string& joiner) {
    return joiners_.Join({.role = NodeRole::kWorker, .name = name, .host = "b", .joiner = joiner},
                         NodeTable(nodes_, 100), options_, now_);
  }
  Joiners joiners_;
  TimePoint now_;
};

TEST_F(JoinersTest, TheSecondOfOneNameIsRefused) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Joining first, Join("far", "one"));
  const auto refused = StatusIs(StatusCode::kFailedPrecondition,
                                HasSubstr("another `muster join` has the name far"));
  EXPECT_THAT(Join("far", "two"), refused) << "the first node may not have begun";
  EXPECT_THAT(Join("near", "two").status(), testing::IsOk());
  Add("far", NodeState::kRunning, "b");
  now_ += std::chrono::hours(1);
  EXPECT_THAT(Join("far", "two"), refused) << "two machines with one host name";
  MUSTER_ASSERT_OK_AND_ASSIGN(const Joining again, Join("far", "one"));
  EXPECT_EQ(again.first_start, StartNumber(5)) << "the same, started again";
}

TEST_F(JoinersTest, TheNameOfADeadNodeIsFree) {
  ASSERT_THAT(Join("far", "one").status(), testing::IsOk());
  Add("far", NodeState::kLost, "b");
  now_ += std::chrono::hours(1);
  EXPECT_THAT(Join("far", "two").status(), testing::IsOk());
  EXPECT_THAT(Join("far", "one").status(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("has the name far")));
}

TEST_F(JoinersTest, AnotherMachineTakesThePlaceOfALostNodeAtOnce) {
  ASSERT_THAT(Join("far", "one").status(), testing::IsOk());
  Add("far", NodeState::kLost, "b");
  EXPECT_THAT(Join("far", "two").status(), testing::IsOk());
  EXPECT_THAT(Join("far", "three").status(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("has the name far")))
      << "what is lost is the life before the second's";
}

TEST_F(JoinersTest, WhoAskedForTheStatusSinceTheEndKnowsIt) {
  for (const char* name : {"a", "b", "left"}) ASSERT_THAT(Join(name, name).status(), IsOk());
  Add("left", NodeState::kFinished, "b");
  const auto unheard = [&] { return joiners_.EndUnheardBy(NodeTable(nodes_, 100), now_); };
  EXPECT_THAT(unheard(), ElementsAre("a", "b"));
  joiners_.IsTold("a", /*over=*/false, now_);
  EXPECT_THAT(unheard(), ElementsAre("a", "b"));
  joiners_.IsTold("a", /*over=*/true, now_);
  joiners_.IsTold("", /*over=*/true, now_);
  EXPECT_THAT(unheard(), ElementsAre("b"));
  now_ += std::chrono::seconds(9);
  joiners_.IsTold("b", /*over=*/false, now_);
  now_ += std::chrono::seconds(9);
  EXPECT_THAT(unheard(), ElementsAre("b"));
  now_ += std::chrono::seconds(1);
  EXPECT_THAT(unheard(), IsEmpty()) << "its machine may be gone";
}

TEST_F(JoinersTest, AnOlderReleaseIsNotChecked) {
  ASSERT_THAT(Join("far", "one").status(), testing::IsOk());
  EXPECT_THAT(Join("far", "").status(), testing::IsOk());
}

}  // namespace
}  // namespace muster
