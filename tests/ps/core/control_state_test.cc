#include "ps/core/control_state.h"

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TableSpec TableOf(uint32_t id) {
  TableSpec table;
  table.id = TableId(id);
  return table;
}
ServerExchangeReply Reply(uint64_t master) {
  ServerExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(master);
  return reply;
}

class ControlStateTest : public ::testing::Test {
 protected:
  ControlState state_{{MasterIncarnation(2), ServerId(1), ServerIncarnation(7)}, 2};
};

TEST_F(ControlStateTest, RequestsCarryTheLanesTogether) {
  std::vector<LaneReport> lanes(2);
  lanes[0].owned.push_back({PartitionId(0), OwnerEpoch(1), {}});
  lanes[1].owned.push_back({PartitionId(1), OwnerEpoch(1), {}});
  lanes[1].snapshots.push_back({PartitionId(1), OwnerEpoch(1), {}});
  lanes[0].missing.push_back({PartitionId(2), OwnerEpoch(4)});
  lanes[0].counters.pulls = 3;
  lanes[1].counters.pulls = 4;
  lanes[1].counters.rows = 5;
  lanes[0].restore_error = "no such file";
  lanes[1].snapshot_error = "disk full";
  EXPECT_EQ(state_.NextSequence(), 1u);
  const ServerExchangeRequest request = state_.MakeRequest(lanes, {});
  EXPECT_EQ(request.id, ServerId(1));
  EXPECT_EQ(request.incarnation, ServerIncarnation(7));
  EXPECT_EQ(request.sequence, 1u);
  EXPECT_THAT(request.owned, SizeIs(2));
  EXPECT_THAT(request.snapshots, SizeIs(1));
  EXPECT_THAT(request.missing, SizeIs(1));
  EXPECT_EQ(request.counters.pulls, 7u);
  EXPECT_EQ(request.counters.rows, 5u);
  EXPECT_EQ(request.snapshot_error, "disk full");
  EXPECT_EQ(request.restore_error, "no such file");
  const ServerExchangeRequest failing =
      state_.MakeRequest(lanes, {.warm_start = "no folder", .fatal = "another export"});
  EXPECT_EQ(failing.warm_start_error, "no folder");
  EXPECT_EQ(failing.fatal_error, "another export");
}

TEST_F(ControlStateTest, CommandsGoToTheLaneOfTheirPartition) {
  ServerExchangeReply reply = Reply(2);
  reply.owns.resize(1);
  reply.owns[0].partition = PartitionId(3);
  reply.snapshots.resize(1);
  reply.snapshots[0].partition = PartitionId(4);
  reply.accepted.resize(1);
  reply.accepted[0].partition = PartitionId(5);
  reply.forget = ForgetState{};
  reply.forget->version = 9;
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto orders, state_.OnReply(reply));
  ASSERT_THAT(orders.lanes, SizeIs(2));
  EXPECT_THAT(orders.lanes[0].owns, IsEmpty());
  EXPECT_THAT(orders.lanes[1].owns, SizeIs(1));
  EXPECT_THAT(orders.lanes[0].snapshots, SizeIs(1));
  EXPECT_THAT(orders.lanes[1].accepted, SizeIs(1));
  EXPECT_EQ(orders.lanes[1].forget->version, 9u);
  EXPECT_EQ(state_.MakeRequest({}, {}).forget_version, 9u);
}

TEST_F(ControlStateTest, AReplyCountsForTheReportsThatWereInTheRequest) {
  std::vector<LaneReport> lanes(2);
  lanes[0].sequence = lanes[1].sequence = state_.NextSequence();
  lanes[1].owned.push_back({PartitionId(1), OwnerEpoch(1), {}});
  EXPECT_THAT(state_.MakeRequest(lanes, {}).owned, SizeIs(1));
  EXPECT_EQ(state_.OnReply(Reply(2))->lanes[1].sequence, 1u);
  // Lane 1 is busy: what it said before is said again, and nothing newer is answered.
  lanes[0].sequence = state_.NextSequence();
  const ServerExchangeRequest repeated = state_.MakeRequest(lanes, {});
  EXPECT_EQ(repeated.sequence, 2u);
  EXPECT_THAT(repeated.owned, SizeIs(1));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto orders, state_.OnReply(Reply(2)));
  EXPECT_EQ(orders.lanes[0].sequence, 2u);
  EXPECT_EQ(orders.lanes[1].sequence, 1u);
}

TEST_F(ControlStateTest, AnOlderMasterIsRefused) {
  EXPECT_THAT(state_.OnReply(Reply(3)), IsOk());
  EXPECT_THAT(state_.OnReply(Reply(2)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("master incarnation 2")));
  EXPECT_THAT(state_.OnReply(Reply(3)), IsOk());
}

TEST_F(ControlStateTest, ANewMasterCountsForgettingAnew) {
  ServerExchangeReply reply = Reply(2);
  reply.forget = ForgetState{};
  reply.forget->version = 9;
  ASSERT_THAT(state_.OnReply(reply), IsOk());
  ASSERT_THAT(state_.OnReply(Reply(3)), IsOk());
  EXPECT_EQ(state_.MakeRequest({}, {}).forget_version, 0u);
}

TEST_F(ControlStateTest, AForgottenServerMustEnd) {
  ServerExchangeReply reply = Reply(2);
  reply.unknown_incarnation = true;
  EXPECT_THAT(state_.OnReply(reply),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("must end")));
}

TEST_F(ControlStateTest, TablesAreHandedOutOnceAndCountWhenTheLanesHaveThem) {
  ServerExchangeReply reply = Reply(2);
  reply.tables = {TableOf(1), TableOf(2)};
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, state_.OnReply(reply));
  EXPECT_THAT(first.tables, SizeIs(2));
  reply.tables.push_back(TableOf(3));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto second, state_.OnReply(reply));
  ASSERT_THAT(second.tables, SizeIs(1));
  EXPECT_EQ(second.tables[0].id, TableId(3));
  EXPECT_EQ(state_.MakeRequest({}, {}).newest_table, TableId(0));
  state_.TableAdded(TableId(1));
  EXPECT_EQ(state_.MakeRequest({}, {}).newest_table, TableId(1));
}

TEST_F(ControlStateTest, TrafficOfAllLanesGoesAlongAndAllOfItToANewMaster) {
  std::vector<LaneReport> lanes(2);
  lanes[0].traffic.push_back({.partition = PartitionId(0), .pulls = 1});
  lanes[1].traffic.push_back({.partition = PartitionId(1), .pulls = 2});
  lanes[0].counters.service_us = 3;
  lanes[1].counters.service_us = 4;
  EXPECT_THAT(state_.MakeRequest(lanes, {}).traffic, SizeIs(2));
  EXPECT_EQ(state_.MakeRequest(lanes, {}).counters.service_us, 7u);
  EXPECT_FALSE(state_.OnReply(Reply(2))->lanes[0].new_master);
  EXPECT_TRUE(state_.OnReply(Reply(3))->lanes[1].new_master);
  EXPECT_FALSE(state_.OnReply(Reply(3))->lanes[1].new_master);
}

TEST_F(ControlStateTest, LeavingIsSaidUntilTheEnd) {
  EXPECT_FALSE(state_.MakeRequest({}, {}).leaving);
  state_.Leave();
  EXPECT_TRUE(state_.MakeRequest({}, {}).leaving);
  ServerExchangeReply reply = Reply(2);
  EXPECT_FALSE(state_.OnReply(reply)->drained);
  reply.drained = true;
  EXPECT_TRUE(state_.OnReply(reply)->drained);
}

}  // namespace
}  // namespace muster::ps
