#include "master/group_core/group_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/master/group_core/fake_data.h"
#include "tests/master/group_core/model_member.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeData;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::ModelMember;
using testing::ModelState;
using ::testing::SizeIs;
using testing::StatusIs;

/// A core among model members that do all that they can, in turn.
class GroupCoreTest : public ::testing::Test {
 protected:
  void Start() {
    data.incarnation = MasterIncarnation(++masters);
    core = std::make_unique<GroupCore>(options, data.incarnation, records, &data, now);
  }
  ModelMember& Add(const std::string& worker, uint32_t digest = 7) {
    members.push_back(std::make_unique<ModelMember>(worker, ++incarnations, digest));
    return *members.back();
  }
  void Call(ModelMember& member) {
    ASSERT_THAT(core->Exchange(member.Report(), now), IsOk());
    Sync();
    member.Take(core->ReplyFor(member.worker, member.incarnation));
  }
  void Sync() {
    std::vector<GroupMutation> mutations;
    core->Collect(&mutations);
    for (const GroupMutation& mutation : mutations) Apply(mutation, &records);
  }
  /// Everybody calls and works once.
  void Round() {
    now += milliseconds(100);
    for (auto& member : members) {
      Call(*member);
      member->Work(&fabric);
      member->Store(&fabric);
    }
    core->Tick(now);
  }
  /// Of three members that have made steps, one will come to another state.
  ModelMember& OneOfThreeIsOdd() {
    options.members_max = 3;
    Start();
    for (const char* const worker : {"worker-0", "worker-1", "worker-2"}) Add(worker);
    while (Steps() < 2) Round();
    members[1]->spoiled = 1;
    return *members[1];
  }
  void Rounds(int count) {
    for (int i = 0; i < count; ++i) Round();
  }
  uint64_t Steps() { return records.step.has_value() ? records.step->step.value() : 0; }

  GroupOptions options{.members_min = 1, .members_max = 2};
  FakeData data{std::vector<uint32_t>(8, 4)};
  GroupRecords records;
  std::unique_ptr<GroupCore> core;
  std::vector<std::unique_ptr<ModelMember>> members;
  testing::ModelFabric fabric;
  TimePoint now{std::chrono::seconds(100)};
  uint64_t masters = 0, incarnations = 0;
};

TEST_F(GroupCoreTest, AGroupTrainsAllShardsAndStoresTheLastState) {
  Start();
  Add("worker-0");
  Add("worker-1");
  for (int i = 0; i < 60 && !data.over; ++i) Round();
  EXPECT_TRUE(data.over);
  EXPECT_EQ(Steps(), 8u);
  EXPECT_EQ(data.CountOf(FakeData::State::kCommitted), 8u);
  EXPECT_EQ(data.records, 32u);
  EXPECT_EQ(records.checkpoint->label.step, StepNumber(8));
  EXPECT_EQ(records.group->attempt, AttemptNumber(1)) << "nothing went wrong";
  EXPECT_EQ(members[0]->computations, 16u);
  EXPECT_EQ(members[0]->state, members[1]->state);
  EXPECT_THAT(core->TakeUnusedObjects(), IsEmpty());
}

TEST_F(GroupCoreTest, TheSurvivorComputesOnlyWhatTheDeadOneHad) {
  Start();
  Add("worker-0");
  Add("worker-1");
  while (Steps() < 1) Round();
  ModelMember& survivor = *members[0];
  Call(survivor);
  survivor.Work(&fabric);
  const uint64_t before = survivor.computations;
  core->Gone("worker-1", members[1]->incarnation, now);
  members.pop_back();
  Call(survivor);
  survivor.Work(&fabric);
  EXPECT_EQ(survivor.computations, before + 2);
  Call(survivor);
  EXPECT_EQ(Steps(), 2u);
  EXPECT_EQ(data.records, 8u);
}

TEST_F(GroupCoreTest, AVoteBeforeTheDeathCounts) {
  Start();
  Add("worker-0");
  Add("worker-1");
  while (!members[0]->sum.has_value() || !members[1]->sum.has_value()) {
    now += milliseconds(10);
    for (auto& member : members) {
      if (!member->sum.has_value()) Call(*member);
      member->Work(&fabric);
    }
  }
  const uint64_t steps = Steps();
  Call(*members[1]);
  core->Gone("worker-1", members[1]->incarnation, now);
  // The other one has not voted, so it is alone with a new attempt.
  Call(*members[0]);
  EXPECT_EQ(Steps(), steps);
  EXPECT_FALSE(members[0]->sum.has_value());
}

TEST_F(GroupCoreTest, AMasterThatContinuesRepeatsTheStep) {
  Start();
  Add("worker-0");
  Add("worker-1");
  while (Steps() < 3) Round();
  Start();
  Rounds(2);
  EXPECT_EQ(records.group->attempt, AttemptNumber(2));
  while (!data.over) Round();
  EXPECT_EQ(Steps(), 8u);
  EXPECT_EQ(data.CountOf(FakeData::State::kCommitted), 8u);
}

TEST_F(GroupCoreTest, TheStatesOfTheMembersAreMadeEqualFirst) {
  options.members_min = 2;
  Start();
  Add("worker-0", 1);
  ModelMember& other = Add("worker-1", 2);
  Rounds(5);
  EXPECT_EQ(Steps(), 0u) << "one member waits for the second";
  EXPECT_EQ(other.reply.standing, GroupStanding::kLearner);
  ASSERT_TRUE(other.reply.source.has_value());
  other.Adopt(other.reply.source->label, members[0]->capture->content);
  Rounds(3);
  EXPECT_TRUE(other.is_member());
  EXPECT_GT(Steps(), 0u);
}

TEST_F(GroupCoreTest, ACrashIsChargedOnceAndThenTheShardFails) {
  data.failures_max = 2;
  Start();
  Add("worker-0");
  Add("worker-1");
  while (Steps() < 1) Round();
  for (int i = 0; i < 2; ++i) {
    const LeaseToken token = core->ReplyFor("worker-0", members[0]->incarnation).work->token;
    ModelMember& victim = *members[1];
    core->Crashed("worker-1", victim.incarnation, token, "crashed with signal 11", now);
    core->Crashed("worker-1", victim.incarnation, token, "crashed with signal 11", now);
    EXPECT_THAT(data.charges, SizeIs(static_cast<size_t>(i + 1)));
    Call(*members[0]);
  }
  EXPECT_EQ(data.states[1], FakeData::State::kFailed);
  EXPECT_EQ(members[0]->reply.work->shard, testing::GroupShard(2));
}

TEST_F(GroupCoreTest, ADrainedMemberGoesAfterTheStep) {
  Start();
  Add("worker-0");
  Add("worker-1");
  while (Steps() < 1) Round();
  EXPECT_TRUE(core->IsMember("worker-1"));
  const uint64_t news = core->NewsFor("worker-1", members[1]->incarnation);
  core->Drain("worker-1", true, now);
  EXPECT_GT(core->NewsFor("worker-1", members[1]->incarnation), news);
  EXPECT_TRUE(core->IsMember("worker-1"));
  const uint64_t step = Steps();
  while (core->IsMember("worker-1")) Round();
  EXPECT_LE(Steps(), step + 1);
  core->Drain("worker-1", false, now);
  Round();
  EXPECT_NE(members[1]->reply.standing, GroupStanding::kWaiting);
}

TEST_F(GroupCoreTest, APairThatNeverMeetsLosesOne) {
  Start();
  Add("worker-0");
  Add("worker-1");
  while (Steps() < 1) Round();
  for (int i = 0; i < 12 && core->IsMember("worker-1"); ++i) {
    now += milliseconds(100);
    for (auto& member : members) {
      const GroupMember& other = member->reply.members.at(1 - member->reply.rank);
      member->suspected = {{other.worker, other.incarnation, "timeout"}};
      Call(*member);
      Call(*member);
    }
  }
  EXPECT_FALSE(core->IsMember("worker-1"));
  EXPECT_THAT(data.events, Contains(HasSubstr("group-member-evicted worker-1")));
  EXPECT_TRUE(core->IsMember("worker-0"));
}

TEST_F(GroupCoreTest, ASilentMemberIsLost) {
  Start();
  Add("worker-0");
  Add("worker-1");
  while (Steps() < 1) Round();
  const std::unique_ptr<ModelMember> silent = std::move(members.back());
  members.pop_back();
  for (int i = 0; i < 49; ++i) Round();
  EXPECT_TRUE(core->IsMember("worker-1"));
  Rounds(2);
  EXPECT_FALSE(core->IsMember("worker-1"));
  EXPECT_THAT(data.events, Contains(HasSubstr("worker-1: it was silent for 5000 ms")));
  Call(*silent);
  EXPECT_EQ(silent->reply.standing, GroupStanding::kUnknown);
  Call(*silent);
  EXPECT_EQ(silent->reply.standing, GroupStanding::kLearner);
}

TEST_F(GroupCoreTest, TheOddOneDropsItsStateAndLearnsThatOfTheOthers) {
  ModelMember& odd = OneOfThreeIsOdd();
  for (int i = 0; i < 5 && odd.label.has_value(); ++i) Round();
  EXPECT_FALSE(odd.label.has_value());
  EXPECT_THAT(data.events, Contains(HasSubstr("group-states-differ worker-1: its state after")));
  EXPECT_FALSE(core->IsMember("worker-1"));
  EXPECT_FALSE(data.over);
  for (int i = 0; i < 5 && !odd.reply.source.has_value(); ++i) Round();
  ASSERT_TRUE(odd.reply.source.has_value()) << "it learns";
  const StateLabel learned = odd.reply.source->label;
  odd.Adopt(learned, ModelState(members[0]->state.begin(),
                                members[0]->state.begin() +
                                    static_cast<std::ptrdiff_t>(learned.step.value())));
  while (*odd.label != *members[0]->label) {
    odd.Replay(members[0]->state[odd.label->step.value()]);
  }
  for (int i = 0; i < 60 && !core->IsMember("worker-1"); ++i) Round();
  EXPECT_TRUE(core->IsMember("worker-1"));
}

TEST_F(GroupCoreTest, ADropThatIsNotHeardIsToldAgain) {
  ModelMember& odd = OneOfThreeIsOdd();
  for (auto& member : members) ASSERT_THAT(core->Exchange(member->Report(), now), IsOk());
  for (int i = 0; i < 2; ++i) {
    const GroupExchangeReply reply = core->ReplyFor(odd.worker, odd.incarnation);
    EXPECT_TRUE(reply.drop_state);
    EXPECT_EQ(reply.standing, GroupStanding::kWaiting);
    EXPECT_FALSE(reply.source.has_value());
    ASSERT_THAT(core->Exchange(odd.Report(), now), IsOk());
  }
  Call(odd);
  ASSERT_THAT(core->Exchange(odd.Report(), now), IsOk());
  EXPECT_FALSE(core->ReplyFor(odd.worker, odd.incarnation).drop_state) << "it has none";
  EXPECT_EQ(core->ReplyFor(odd.worker, odd.incarnation).standing, GroupStanding::kLearner);
}

TEST_F(GroupCoreTest, TwoMembersThatDifferFailTheJob) {
  Start();
  Add("worker-0");
  Add("worker-1").spoiled = 1;
  for (int i = 0; i < 20 && !data.over; ++i) Round();
  EXPECT_TRUE(data.over);
  EXPECT_LT(Steps(), 8u);
  EXPECT_THAT(data.failed_with, HasSubstr("the states after step 0 differ: worker-0 has "));
  EXPECT_THAT(data.failed_with, HasSubstr(", worker-1 has "));
  EXPECT_THAT(data.failed_with, HasSubstr("`apply` may depend only on the registered state"));
  EXPECT_FALSE(records.checkpoint.has_value());
}

TEST_F(GroupCoreTest, AMemberMayEndAfterTheJob) {
  Start();
  Add("worker-0");
  Add("worker-1");
  while (!data.over) Round();
  const uint64_t news = core->NewsFor("worker-0", members[0]->incarnation);
  core->Gone("worker-1", members[1]->incarnation, now);
  EXPECT_GE(core->NewsFor("worker-0", members[0]->incarnation), news);
  EXPECT_THAT(core->ReplyFor("worker-0", members[0]->incarnation).members, IsEmpty());
}

TEST_F(GroupCoreTest, ADeadProcessGetsNoAnswer) {
  Start();
  ModelMember& member = Add("worker-0");
  Call(member);
  core->Gone("worker-0", 0, now);
  EXPECT_THAT(core->Exchange(member.Report(), now),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::_));
  EXPECT_EQ(core->NewsFor("worker-0", member.incarnation), 0u);
}

}  // namespace
}  // namespace muster
