#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/master/core/core_fixture.h"
#include "tests/master/group_core/model_member.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CoreFixture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::ModelMember;
using ::testing::SizeIs;
using testing::StatusIs;

/// A master whose job has a group of two model members.
class GroupJobTest : public ::testing::Test, protected CoreFixture {
 protected:
  GroupJobTest() {
    options.servers = 0;
    options.group = GroupOptions{.members_max = 2, .checkpoint_interval = seconds(3'600)};
  }
  void StartGroup() {
    Start();
    for (const char* name : {"worker-0", "worker-1"}) Add(name);
  }
  ModelMember& Add(const std::string& name) {
    members.push_back(std::make_unique<ModelMember>(name, ++incarnations, 7));
    MUSTER_CHECK(core->HelloWorker({name, incarnations}, StartNumber(0), At()).ok());
    return *members.back();
  }
  void Call(ModelMember& member) {
    member.leaving = member.leaving || member.reply.directive == JobDirective::kDrain;
    const absl::Status taken = core->ExchangeGroup(member.Report(), At());
    MUSTER_CHECK_MSG(taken.ok(), taken.ToString());
    Sync();
    // The journal has the step and the DONE shard of it, or neither.
    const DurableState& state = journal.state();
    EXPECT_EQ(state.done.size(), Step() - (state.group.checkpoint.has_value()
                                               ? state.group.checkpoint->label.step.value()
                                               : 0));
    member.Take(core->GroupReplyFor({member.worker, member.incarnation}));
  }
  void Round() {
    Advance(milliseconds(50));
    for (auto& member : members) {
      Call(*member);
      member->Work(&fabric);
      member->Store(&fabric);
    }
  }
  uint64_t Step() const { return journal.state().group.step.value_or(StepRecord()).step.value(); }
  void TrainTo(uint64_t step) {
    for (int i = 0; i < 100 && Step() < step; ++i) Round();
    ASSERT_EQ(Step(), step);
  }
  void Exited(const ModelMember& member, uint32_t signal, LeaseToken computing = {}) {
    NodeReport report{.node = member.worker, .role = NodeRole::kWorker};
    report.what = NodeReport::What::kExited;
    report.signal = signal;
    report.incarnation = member.incarnation;
    report.computing_token = computing;
    core->ReportNode(report, At());
    Sync();
  }
  size_t MemberCount() const { return journal.state().group.group->members.size(); }
  ShardState StateOf(uint64_t shard) const {
    return core->ledger().queue().StateOf({DatasetId(0), EpochIndex(0), ShardIndex(shard)});
  }

  std::vector<std::unique_ptr<ModelMember>> members;
  uint64_t incarnations = 0;
  testing::ModelFabric fabric;
};

TEST_F(GroupJobTest, AGroupTrainsTheJobToItsEnd) {
  StartGroup();
  TrainTo(3);
  EXPECT_EQ(StateOf(2), ShardState::kDone);
  EXPECT_EQ(StateOf(3), ShardState::kTodo) << "in work, and not leased";
  EXPECT_EQ(core->leases().size(), 0u);
  EXPECT_THAT(Want(5).grants, IsEmpty()) << "nothing is granted to single workers";
  for (int i = 0; i < 20 && core->state() == JobState::kRunning; ++i) Round();
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  EXPECT_EQ(Step(), 4u);
  EXPECT_EQ(core->ledger().RecordsCommitted(DatasetId(0), EpochIndex(0)), 40u);
  EXPECT_EQ(core->ledger().Metrics(DatasetId(0), EpochIndex(0))->records, 8u);
  Round();
  EXPECT_EQ(members[0]->reply.directive, JobDirective::kEnd);
  EXPECT_TRUE(members[0]->reply.succeeded);
  // Members take turns, so each has a part of the progress.
  EXPECT_EQ(core->nodes().nodes().at("worker-0").record.records_committed, 20u);
  EXPECT_EQ(core->nodes().nodes().at("worker-1").record.records_committed, 20u);
}

TEST_F(GroupJobTest, ACancelledJobHasNotSucceeded) {
  StartGroup();
  TrainTo(2);
  ASSERT_THAT(core->Cancel({.reason = "by hand"}, At()), IsOk());
  Sync();
  Round();
  EXPECT_EQ(members[0]->reply.directive, JobDirective::kEnd);
  EXPECT_FALSE(members[0]->reply.succeeded);
}

TEST_F(GroupJobTest, AMasterThatRestartsGoesOnWithANewAttempt) {
  StartGroup();
  TrainTo(2);
  Restart();
  EXPECT_EQ(core->ledger().queue().done().size(), 2u);
  TrainTo(3);
  EXPECT_EQ(journal.state().group.group->attempt, AttemptNumber(2));
  Call(*members[0]);
  EXPECT_EQ(members[0]->state.size(), 3u);
}

TEST_F(GroupJobTest, ANewRunGoesBackToTheCheckpoint) {
  StartGroup();
  TrainTo(2);
  members.clear();
  options.run_id = "run-2";
  StartGroup();
  EXPECT_EQ(core->ledger().queue().done().size(), 2u) << "partitions undo nothing in a group";
  for (int i = 0; i < 20 && journal.state().group.group->lineage == LineageNumber(1); ++i) Round();
  EXPECT_EQ(journal.state().group.group->lineage, LineageNumber(2));
  TrainTo(1);
  EXPECT_EQ(core->ledger().queue().done().size(), 1u);
  EXPECT_GT(core->totals().replayed_shards, 0u);
}

TEST_F(GroupJobTest, AnExitEndsAMembershipAtOnce) {
  StartGroup();
  TrainTo(1);
  const LeaseToken token = members[0]->reply.work->token;
  Exited(*members[1], SIGKILL, token);
  EXPECT_EQ(MemberCount(), 1u);
  EXPECT_THAT(core->ledger().failures(), IsEmpty()) << "it was killed";
  members.pop_back();
  TrainTo(2);
}

TEST_F(GroupJobTest, ACrashOfTheTrainerCountsForTheShard) {
  StartGroup();
  TrainTo(1);
  Call(*members[0]);
  const LeaseToken token = members[0]->reply.work->token;
  Exited(*members[1], SIGSEGV, token);
  ASSERT_THAT(core->ledger().failures(), SizeIs(1));
  EXPECT_EQ(core->ledger().failures().begin()->second.failures, 1u);
  EXPECT_EQ(core->ledger().failures().begin()->second.charged, token);
}

TEST_F(GroupJobTest, ANewProcessOfAWorkerReplacesTheMember) {
  StartGroup();
  TrainTo(1);
  Hello("worker-1", 99);
  Sync();
  EXPECT_EQ(MemberCount(), 1u);
  EXPECT_THAT(core->ExchangeGroup(members[1]->Report(), At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::_));
}

TEST_F(GroupJobTest, ADrainedNodeLeavesBetweenSteps) {
  StartGroup();
  TrainTo(1);
  const uint64_t news = core->GroupNewsFor({"worker-1", members[1]->incarnation});
  absl::StatusOr<NodeDrain> drain = core->DrainNode("worker-1", milliseconds(0), At());
  ASSERT_THAT(drain, IsOk());
  EXPECT_EQ(drain->left, 1u);
  EXPECT_GT(core->GroupNewsFor({"worker-1", members[1]->incarnation}), news);
  TrainTo(2);
  Round();
  EXPECT_EQ(MemberCount(), 1u);
  EXPECT_EQ(core->nodes().nodes().at("worker-1").drain.state, DrainState::kDrained);
  EXPECT_EQ(members[1]->reply.directive, JobDirective::kDrain);
  EXPECT_EQ(members[0]->reply.directive, JobDirective::kWork);
}

TEST_F(GroupJobTest, ADrainOfTheJobStoresTheState) {
  StartGroup();
  TrainTo(2);
  core->Drain(At());
  for (int i = 0; i < 20 && core->state() == JobState::kDraining; ++i) Round();
  EXPECT_EQ(core->state(), JobState::kDrained);
  EXPECT_THAT(core->ledger().queue().done(), SizeIs(0));
  EXPECT_EQ(journal.state().group.checkpoint->label.step.value(), Step());
}

TEST_F(GroupJobTest, ACallIsAnsweredWhenThereIsNews) {
  StartGroup();
  TrainTo(1);
  for (auto& member : members) Call(*member);
  const GroupExchangeRequest call = members[0]->Report();
  ASSERT_THAT(core->ExchangeGroup(call, At()), IsOk());
  const auto due = [&](milliseconds after) { return core->IsGroupCallDue(call, now, now + after); };
  EXPECT_FALSE(due(options.group->heartbeat_interval - milliseconds(1)));
  EXPECT_TRUE(due(options.group->heartbeat_interval));
  GroupExchangeRequest of_former_master = call;
  of_former_master.master_incarnation = MasterIncarnation(0);
  EXPECT_TRUE(core->IsGroupCallDue(of_former_master, now, now));
  ASSERT_THAT(core->ExchangeGroup(members[0]->Report(), At()), IsOk());
  EXPECT_TRUE(due(milliseconds(0))) << "a newer call ends it";
  const GroupExchangeRequest newer = members[0]->Report();
  ASSERT_THAT(core->ExchangeGroup(newer, At()), IsOk());
  EXPECT_FALSE(core->IsGroupCallDue(newer, now, now));
  Exited(*members[1], SIGKILL);
  EXPECT_TRUE(core->IsGroupCallDue(newer, now, now)) << "there is a new attempt";
  Exited(*members[0], SIGKILL);
  EXPECT_TRUE(core->IsGroupCallDue(newer, now, now)) << "it is dead, and shall know";
}

TEST_F(GroupJobTest, AGroupWithTablesNeedsItsServers) {
  StartGroup();
  DurableState state = journal.state();
  EXPECT_THAT(GroupJob::CheckFits(options, state), IsOk());
  state.tables[TableId(1)];
  EXPECT_THAT(GroupJob::CheckFits(options, state),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may not be 0")));
  options.servers = 1;
  EXPECT_THAT(GroupJob::CheckFits(options, state), IsOk());
}

TEST_F(GroupJobTest, SnapshotsOfServersAloneCommitNothing) {
  options.servers = 1;
  StartGroup();
  Register(1);
  ExchangeServer(ServerRequest());
  TrainTo(2);
  Advance(seconds(20));
  Snapshot();
  Snapshot();
  EXPECT_EQ(core->ledger().queue().committed_count(), 0u);
}

TEST_F(GroupJobTest, AJournalWhoseStepsAreNotItsShardsIsRefused) {
  StartGroup();
  TrainTo(2);
  DurableState state = journal.TakeState();
  EXPECT_THAT(MasterCore::CheckFits(options, state), IsOk());
  state.done.erase(state.done.begin());
  EXPECT_THAT(MasterCore::CheckFits(options, state),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step 2")));
}

TEST_F(GroupJobTest, AJobWithoutAGroupHasNoMembers) {
  options.group.reset();
  Start();
  EXPECT_THAT(core->ExchangeGroup(ModelMember("worker-0", 1, 7).Report(), At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("spec.group")));
  EXPECT_EQ(core->group(), nullptr);
}

}  // namespace
}  // namespace muster
