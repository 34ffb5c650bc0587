#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

TEST_F(OwnedPartitionsTest, ServesExactlyTheEpochThatItOwns) {
  EXPECT_EQ(Push(1, 7, 1).code, PartCode::kWrongOwner);
  OwnEmpty(3);
  EXPECT_EQ(Push(2, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(Push(3, 7, 1).code, PartCode::kOk);
  EXPECT_EQ(Pull(2, {7}).parts.at(0).code, PartCode::kWrongOwner);
  EXPECT_EQ(Row(3, 7), 1);
  EXPECT_EQ(PushTo(0, 0, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(PushTo(1, 3, 7, 1).code, PartCode::kWrongOwner) << "of the other lane";
  EXPECT_EQ(PushTo(6, 3, 7, 1).code, PartCode::kWrongOwner) << "beyond the job's partitions";
  const LaneReport report = owned_.Report(1);
  ASSERT_THAT(report.owned, SizeIs(1));
  EXPECT_EQ(report.owned[0].partition, kP);
  EXPECT_EQ(report.owned[0].epoch, OwnerEpoch(3));
  EXPECT_EQ(report.counters.parts_applied, 1u);
  EXPECT_EQ(report.counters.parts_wrong_owner, 6u);
  EXPECT_EQ(report.counters.rows, 1u);
}

TEST_F(OwnedPartitionsTest, QuestionsAreForTheOwnerAndCountAsNoParts) {
  OwnEmpty(3);
  Push(3, 7, 1);
  const auto ask = [&](uint64_t epoch, uint32_t minibatch) {
    wire::PushPart part{.partition = kP.value(), .owner_epoch = epoch, .minibatch = minibatch};
    part.token = Token(9).value();
    PushReply reply;
    owned_.Push({.parts = {&part, 1}}, &reply);
    return reply.parts.at(0);
  };
  const ServerCounters before = owned_.Report(1).counters;
  EXPECT_EQ(ask(3, 0), (wire::PartReply{kP.value(), PartCode::kOk, true}));
  EXPECT_EQ(ask(3, 1), (wire::PartReply{kP.value(), PartCode::kMissing, false}));
  EXPECT_EQ(ask(2, 0).code, PartCode::kWrongOwner);
  const ServerCounters after = owned_.Report(1).counters;
  EXPECT_EQ(after.parts_skipped, before.parts_skipped);
  EXPECT_EQ(after.parts_applied, before.parts_applied);
  EXPECT_EQ(Row(3, 7), 1);
}

TEST_F(OwnedPartitionsTest, CommandsForOtherLanesAreDropped) {
  Own({PartitionId(1), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  Own({PartitionId(600), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  EXPECT_THAT(owned_.Report(1).owned, IsEmpty());
}

TEST_F(OwnedPartitionsTest, ARepeatedOwnChangesNothing) {
  OwnEmpty(3);
  Push(3, 7, 1);
  OwnEmpty(3);
  EXPECT_EQ(Row(3, 7), 1);
  EXPECT_TRUE(Push(3, 7, 1).skipped);
}

TEST_F(OwnedPartitionsTest, ALateOwnOfAnOlderEpochChangesNothing) {
  OwnEmpty(5);
  Push(5, 7, 1);
  OwnFromSnapshot(4);
  EXPECT_THAT(owned_.TakeLoads(now_), IsEmpty());
  EXPECT_EQ(Row(5, 7), 1);
}

TEST_F(OwnedPartitionsTest, ALateOwnDoesNotReviveWhatANewerOneFoundMissing) {
  Own({kP, OwnerEpoch(5), OwnerEpoch(4), {}, false, {}});
  OwnEmpty(4);
  OwnFromSnapshot(4);
  EXPECT_THAT(owned_.TakeLoads(now_), IsEmpty());
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_THAT(owned_.Report(1).missing, SizeIs(1));
}

TEST_F(OwnedPartitionsTest, ARepeatedOwnKeepsTheSnapshotUnderWay) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 3);
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  OwnEmpty(3);
  owned_.Written(kP, Number(10), SnapshotFile{"base", 100}, now_);
  EXPECT_THAT(owned_.Report(1).snapshots, SizeIs(1));
}

TEST_F(OwnedPartitionsTest, AStateSinceTheNamedEpochIsKept) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  EXPECT_EQ(Push(3, 7, 1, 1).code, PartCode::kWrongOwner);
  EXPECT_EQ(Row(4, 7), 1);
  EXPECT_TRUE(Push(4, 7, 1).skipped);
}

TEST_F(OwnedPartitionsTest, ALoadingPartitionKeepsItsLoadWhenTheEpochMovesOn) {
  OwnFromSnapshot(3);
  const auto loads = owned_.TakeLoads(now_);
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kRetry);
  owned_.Loaded(loads.at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Row(4, 7), 70);
}

TEST_F(OwnedPartitionsTest, ARestoreDropsTheOldStateAndLoadsTheManifest) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Push(3, 8, 1, 1);
  OwnFromSnapshot(4);
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kRetry);
  EXPECT_EQ(Pull(4, {7}).parts.at(0).code, PartCode::kRetry);
  EXPECT_EQ(Push(3, 7, 1).code, PartCode::kWrongOwner);
  EXPECT_THAT(owned_.Report(1).owned, IsEmpty()) << "the master asks on until it is loaded";

  const auto loads = owned_.TakeLoads(now_);
  ASSERT_THAT(loads, SizeIs(1));
  EXPECT_EQ(loads[0].partition, kP);
  EXPECT_EQ(loads[0].manifest, FromSnapshot(4).manifest);
  OwnFromSnapshot(4);
  EXPECT_THAT(owned_.TakeLoads(now_), IsEmpty()) << "a repeat must not load twice";

  owned_.Loaded(loads[0].id, LoadedPartition(), now_);
  EXPECT_EQ(Row(4, 7), 70);
  EXPECT_EQ(Row(4, 8), 0);
  const LaneReport report = owned_.Report(2);
  ASSERT_THAT(report.owned, SizeIs(1));
  EXPECT_EQ(report.owned[0].accepted, Number(5));
  EXPECT_EQ(report.counters.partitions_restored, 1u);
}

TEST_F(OwnedPartitionsTest, ALoadOfASupersededEpochIsDropped) {
  OwnFromSnapshot(4);
  const auto first = owned_.TakeLoads(now_);
  OwnFromSnapshot(5);
  const auto second = owned_.TakeLoads(now_);
  owned_.Loaded(first.at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Push(5, 7, 1).code, PartCode::kRetry);
  owned_.Loaded(second.at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Row(5, 7), 70);
}

TEST_F(OwnedPartitionsTest, AFailedLoadIsReportedAndTriedAgainAfterAPause) {
  OwnFromSnapshot(4);
  const auto loads = owned_.TakeLoads(now_);
  owned_.Loaded(loads.at(0).id, absl::DataLossError("file x is damaged"), now_);
  EXPECT_TRUE(owned_.HasNews());
  EXPECT_EQ(owned_.Report(1).restore_error, "file x is damaged");
  EXPECT_EQ(owned_.Report(1).snapshot_error, "") << "no disk is full";
  EXPECT_THAT(owned_.TakeLoads(now_ + milliseconds(99)), IsEmpty());
  const auto again = owned_.TakeLoads(now_ + milliseconds(100));
  ASSERT_THAT(again, SizeIs(1));
  owned_.Loaded(again[0].id, LoadedPartition(), now_);
  EXPECT_EQ(owned_.Report(2).restore_error, "");
  EXPECT_EQ(Row(4, 7), 70);
}

TEST_F(OwnedPartitionsTest, OnePartitionsLoadDoesNotHideTheErrorOfAnother) {
  OwnFromSnapshot(4);
  OwnCommand other = FromSnapshot(4);
  other.partition = PartitionId(4);
  Own(other);
  const auto loads = owned_.TakeLoads(now_);
  ASSERT_THAT(loads, SizeIs(2));
  owned_.Loaded(loads[0].id, absl::DataLossError("file x is damaged"), now_);
  owned_.Loaded(loads[1].id, std::make_unique<Partition>(PartitionId(4), 1), now_);
  EXPECT_EQ(owned_.Report(1).restore_error, "file x is damaged");
  OwnEmpty(5);
  EXPECT_EQ(owned_.Report(2).restore_error, "") << "nobody wants that file any more";
}

TEST_F(OwnedPartitionsTest, AStateThatIsNowhereIsMissingUntilTheMasterDecides) {
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  EXPECT_TRUE(owned_.HasNews());
  EXPECT_EQ(Push(4, 7, 1).code, PartCode::kWrongOwner);
  for (uint64_t sequence : {1, 2}) {
    const LaneReport report = owned_.Report(sequence);
    ASSERT_THAT(report.missing, SizeIs(1));
    EXPECT_EQ(report.missing[0].epoch, OwnerEpoch(4));
  }
  OwnEmpty(5);
  EXPECT_THAT(owned_.Report(3).missing, IsEmpty());
  EXPECT_EQ(Push(5, 7, 1).code, PartCode::kOk);
}

TEST_F(OwnedPartitionsTest, TooOldAStateIsMissingNotKept) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Own({kP, OwnerEpoch(6), OwnerEpoch(5), {}, false, {}});
  EXPECT_THAT(owned_.Report(1).missing, SizeIs(1));
  EXPECT_EQ(Push(6, 7, 1).code, PartCode::kWrongOwner);
}

TEST_F(OwnedPartitionsTest, UnknownTablesAreRetriedAndWrongWidthsRefused) {
  OwnEmpty(3);
  EXPECT_EQ(Pull(3, {7}, 9).parts.at(0).code, PartCode::kRetry);
  std::vector<wire::PushPart> parts(2);
  for (wire::PushPart& part : parts) {
    part.partition = kP.value();
    part.owner_epoch = 3;
    part.token = Token(9).value();
    part.groups = {{.table = kTable, .keys = 1}};
  }
  parts[1].minibatch = 1;
  parts[1].groups[0].table = 9;
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<float> values(5, 1.0f);
  PushReply reply;
  owned_.Push({.parts = parts, .keys = keys, .values = values}, &reply);
  EXPECT_THAT(reply.parts, ElementsAre(wire::PartReply{.partition = 2, .code = PartCode::kRetry},
                                       wire::PartReply{.partition = 2, .code = PartCode::kRetry}));
  parts[1].groups[0].table = kTable;
  reply = {};
  owned_.Push({.parts = parts, .keys = keys, .values = values}, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kBadRequest);
  EXPECT_THAT(reply.text, HasSubstr("5 values, its keys and the widths of its tables make 4"));
  EXPECT_EQ(Row(3, 1), 0) << "nothing may have been applied";
  owned_.AddTable(SumTable(9, 3));
  parts[1].groups[0].table = 9;
  reply = {};
  owned_.Push({.parts = parts, .keys = keys, .values = values}, &reply);
  EXPECT_THAT(reply.parts,
              ElementsAre(wire::PartReply{.partition = 2}, wire::PartReply{.partition = 2}));
}

TEST_F(OwnedPartitionsTest, PartsOfOnePushStandOrFallAlone) {
  OwnEmpty(3);
  std::vector<wire::PushPart> parts(2);
  for (wire::PushPart& part : parts) {
    part.partition = kP.value();
    part.owner_epoch = 3;
    part.token = Token(9).value();
    part.groups = {{.table = kTable, .keys = 1}};
  }
  parts[0].owner_epoch = 2;
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<float> values = {1, 1, 2, 2};
  PushReply reply;
  owned_.Push({.parts = parts, .keys = keys, .values = values}, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kWrongOwner);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kOk);
  EXPECT_EQ(Row(3, 1), 0);
  EXPECT_EQ(Row(3, 2), 2);
}

TEST_F(OwnedPartitionsTest, APullThatIsTooLargeIsRefusedBeforeMemoryIsTaken) {
  owned_.AddTable(SumTable(2, 1u << 29));
  OwnEmpty(3);
  const PullReply reply = Pull(3, {7}, 2);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_THAT(reply.text, HasSubstr("pull fewer keys"));
  EXPECT_EQ(reply.values.size(), 0u);
}

TEST_F(OwnedPartitionsTest, ALimitOfBytesIsOfTheWholeReplyNotOfItsParts) {
  OwnedPartitions owned({.job_seed = 1,
                         .partition_count = 6,
                         .lane = 0,
                         .lane_count = 2,
                         .reply_bytes_max = 5 * 2 * sizeof(float)});
  owned.AddTable(SumTable());
  LaneCommands commands;
  commands.owns = {{kP, OwnerEpoch(3), OwnerEpoch(3), {}, true, {}}};
  owned.Apply(commands);
  const wire::PullPart three{
      .partition = kP.value(), .owner_epoch = 3, .groups = {{.table = kTable, .keys = 3}}};
  const wire::PullPart two{
      .partition = kP.value(), .owner_epoch = 3, .groups = {{.table = kTable, .keys = 2}}};
  const std::vector<uint64_t> keys = {1, 2, 3, 4, 5, 6, 7, 8};
  PullReply reply;
  owned.Pull({.parts = std::vector{three, three, two}, .keys = keys}, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kOk);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.parts.at(2).code, PartCode::kOk) << "it fits beside the first";
  EXPECT_THAT(reply.text, HasSubstr("more than 40 bytes; pull fewer keys"));
  EXPECT_EQ(reply.values.size(), 5 * 2 * sizeof(float));
}

TEST_F(OwnedPartitionsTest, ARowThatTheEncodingCannotCarryIsRefusedByName) {
  OwnEmpty(3);
  EXPECT_EQ(Push(3, 7, 7e4f).code, PartCode::kOk);
  const std::vector<uint64_t> keys = {6, 7};
  const wire::PullPart part{
      .partition = kP.value(), .owner_epoch = 3, .groups = {{.table = kTable, .keys = 2}}};
  PullReply reply;
  owned_.Pull({.parts = {&part, 1}, .keys = keys, .encoding = wire::Encoding::kFloat16}, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.values.size(), 0u);
  EXPECT_THAT(reply.text, HasSubstr("table 't': the row of key 7 has 70000 in column 0, but "
                                    "float16 ends at 65504"));
  reply = {};
  owned_.Pull({.parts = {&part, 1}, .keys = keys, .encoding = wire::Encoding::kBfloat16}, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kOk);
}

TEST_F(OwnedPartitionsTest, TheFloorReachesPartitionsThatComeLater) {
  OwnEmpty(3);
  Forget(20);
  EXPECT_EQ(Push(3, 7, 1, 0, 19).code, PartCode::kStaleLease);
  EXPECT_EQ(Push(3, 7, 1, 0, 20).code, PartCode::kOk);
  OwnFromSnapshot(4);
  owned_.Loaded(owned_.TakeLoads(now_).at(0).id, LoadedPartition(), now_);
  EXPECT_EQ(Push(4, 7, 1, 0, 19).code, PartCode::kStaleLease);
}

TEST_F(OwnedPartitionsTest, TrafficIsCountedPerPartitionAndItsTimeSharedOutByRows) {
  OwnEmpty(1);
  Own({PartitionId(4), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  Push(1, 7, 1);
  owned_.CountServed({.received_bytes = 100, .sent_bytes = 10, .time = microseconds(50)});
  const std::vector<wire::PullPart> parts = {
      {.partition = 2, .owner_epoch = 1, .groups = {{.table = kTable, .keys = 1}}},
      {.partition = 4, .owner_epoch = 1, .groups = {{.table = kTable, .keys = 3}}},
      {.partition = 4, .owner_epoch = 9, .groups = {{.table = kTable, .keys = 1}}}};
  const std::vector<uint64_t> keys = {7, 1, 2, 3, 4};
  PullReply reply;
  owned_.Pull({.parts = parts, .keys = keys}, &reply);
  owned_.CountServed({.received_bytes = 5, .sent_bytes = 6, .time = microseconds(40)});
  constexpr uint64_t kRowBytes = 8 + 2 * 4;
  const std::vector<PartitionTraffic> traffic = owned_.ReportTraffic(++sequence_, 10);
  ASSERT_THAT(traffic, SizeIs(2));
  EXPECT_EQ(traffic[0].partition, kP);
  EXPECT_EQ(traffic[0].pulls, 1u);
  EXPECT_EQ(traffic[0].pushes, 1u);
  EXPECT_EQ(traffic[0].moved_rows, 2u);
  EXPECT_EQ(traffic[0].moved_bytes, 2 * kRowBytes);
  EXPECT_EQ(traffic[0].service_us, 60u);
  EXPECT_EQ(traffic[0].rows, 1u);
  EXPECT_GT(traffic[0].row_bytes, 0u);
  EXPECT_EQ(traffic[1].partition, PartitionId(4));
  EXPECT_EQ(traffic[1].pulls, 1u) << "a refused part is none";
  EXPECT_EQ(traffic[1].moved_rows, 3u);
  EXPECT_EQ(traffic[1].service_us, 30u);
  const ServerCounters counters = owned_.Report(++sequence_).counters;
  EXPECT_EQ(counters.pushes, 1u);
  EXPECT_EQ(counters.received_bytes, 105u);
  EXPECT_EQ(counters.sent_bytes, 16u);
  EXPECT_EQ(counters.service_us, 90u);
  // Refused as a whole: time that no partition took.
  EXPECT_EQ(Push(9, 7, 1).code, PartCode::kWrongOwner);
  owned_.CountServed({.received_bytes = 1, .sent_bytes = 1, .time = microseconds(10)});
  EXPECT_EQ(owned_.Report(++sequence_).counters.service_us, 100u);
  EXPECT_EQ(owned_.ReportTraffic(sequence_, 10)[0].service_us, 60u);
}

TEST_F(OwnedPartitionsTest, TrafficIsReportedUntilAnsweredAndAllOfItToANewMaster) {
  const auto answered = [&](uint64_t sequence, bool new_master = false) {
    LaneCommands commands;
    commands.sequence = sequence;
    commands.new_master = new_master;
    Apply(commands);
  };
  OwnEmpty(1);
  Own({PartitionId(4), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  EXPECT_THAT(owned_.ReportTraffic(1, 10), SizeIs(2)) << "they are new";
  EXPECT_THAT(owned_.ReportTraffic(2, 10), SizeIs(2)) << "the first call failed";
  answered(2);
  EXPECT_THAT(owned_.ReportTraffic(3, 10), IsEmpty());
  Push(1, 7, 1);
  EXPECT_THAT(owned_.ReportTraffic(4, 10), SizeIs(1));
  answered(3);
  EXPECT_THAT(owned_.ReportTraffic(5, 10), SizeIs(1)) << "an older call was answered";
  answered(5);
  EXPECT_THAT(owned_.ReportTraffic(6, 10), IsEmpty());
  answered(6, /*new_master=*/true);
  const auto first = owned_.ReportTraffic(7, 1), second = owned_.ReportTraffic(8, 1);
  ASSERT_THAT(first, SizeIs(1));
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_NE(first[0].partition, second[0].partition) << "those left out come next";
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
