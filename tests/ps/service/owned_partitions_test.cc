#include "ps/service/owned_partitions.h"

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::PartCode;

constexpr PartitionId kP{2};
constexpr uint32_t kTable = 1;

SnapshotNumber Number(uint64_t count) {
  return {MasterIncarnation(1), count};
}
LeaseToken Token(uint64_t count) {
  return {MasterIncarnation(1), count};
}
TableSpec SumTable(uint32_t id = kTable, uint32_t dim = 2) {
  TableSpec table;
  table.id = TableId(id);
  table.name = "t";
  table.dim = dim;
  table.optimizer = SumSpec{};
  return table;
}

/// Lane 0 of 2 in a job of 6 partitions (so it has 0, 2 and 4), with one table of width 2.
class OwnedPartitionsTest : public ::testing::Test {
 protected:
  OwnedPartitionsTest() { owned_.AddTable(SumTable(), nullptr); }

  void Apply(LaneCommands commands) { owned_.Apply(commands); }
  void Own(OwnCommand command) {
    LaneCommands commands;
    commands.owns.push_back(std::move(command));
    Apply(commands);
  }
  /// Epoch `epoch` of an empty partition 2.
  void OwnEmpty(uint64_t epoch) { Own({kP, OwnerEpoch(epoch), OwnerEpoch(epoch), {}, true, {}}); }
  void OwnFromSnapshot(uint64_t epoch) { Own(FromSnapshot(epoch)); }
  static OwnCommand FromSnapshot(uint64_t epoch) {
    return {kP,
            OwnerEpoch(epoch),
            OwnerEpoch(epoch),
            {},
            true,
            {Number(5), DoneSeq(3), {{"file", 10}}}};
  }
  void Ask(uint64_t number, uint64_t cut, uint64_t epoch, uint64_t sequence = 0) {
    LaneCommands commands;
    commands.sequence = sequence;
    commands.snapshots.push_back({kP, OwnerEpoch(epoch), DoneSeq(cut), Number(number)});
    Apply(commands);
  }
  void Accept(uint64_t number) {
    LaneCommands commands;
    commands.accepted.push_back({kP, Number(number)});
    Apply(commands);
  }
  void Forget(uint64_t floor) {
    LaneCommands commands;
    auto forget = std::make_shared<ForgetState>();
    forget->version = 1;
    forget->floor = Token(floor);
    commands.forget = forget;
    Apply(commands);
  }

  /// Pushes `value` to both columns of row `key` of partition 2.
  wire::PartReply Push(uint64_t epoch, uint64_t key, float value, uint32_t minibatch = 0,
                       uint64_t token = 9) {
    return PushTo(kP.value(), epoch, key, value, minibatch, token);
  }
  wire::PartReply PushTo(uint32_t partition, uint64_t epoch, uint64_t key, float value,
                         uint32_t minibatch = 0, uint64_t token = 9) {
    wire::PushPart part;
    part.partition = partition;
    part.owner_epoch = epoch;
    part.minibatch = minibatch;
    part.token = Token(token).value();
    part.groups = {{.table = kTable, .keys = 1}};
    const std::vector<float> values = {value, value};
    PushReply reply;
    owned_.Push({.parts = {&part, 1}, .keys = {&key, 1}, .values = values}, &reply);
    text_ = reply.text;
    return reply.parts.at(0);
  }
  PullReply Pull(uint64_t epoch, const std::vector<uint64_t>& keys, uint32_t table = kTable) {
    const wire::PullPart part{
        .partition = kP.value(),
        .owner_epoch = epoch,
        .groups = {{.table = table, .keys = static_cast<uint32_t>(keys.size())}}};
    PullReply reply;
    owned_.Pull({.parts = {&part, 1}, .keys = keys}, &reply);
    return reply;
  }
  float Row(uint64_t epoch, uint64_t key) {
    PullReply reply = Pull(epoch, {key});
    EXPECT_EQ(reply.parts.at(0).code, PartCode::kOk);
    return reply.values.size() == 8 ? reply.values.floats()[0] : -1;
  }
  /// A partition as the loader would build it: row 7 is {70, 70}.
  static std::unique_ptr<Partition> LoadedPartition() {
    auto partition = std::make_unique<Partition>(kP, 1);
    partition->AddTable(SumTable());
    const uint64_t key = 7;
    const std::vector<float> values = {70, 70};
    Part part;
    part.token = Token(1);
    part.groups = {{TableId(kTable), {&key, 1}, values}};
    EXPECT_EQ(partition->Apply(part).code, ApplyCode::kApplied);
    return partition;
  }
  /// Writes and reports one snapshot that is then accepted.
  void SnapshotAccepted(uint64_t number, uint64_t epoch) {
    Ask(number, 1, epoch);
    ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
    owned_.Written(kP, Number(number), SnapshotFile{"f" + std::to_string(number), 100}, now_);
    ASSERT_THAT(owned_.Report(++sequence_).snapshots, SizeIs(1));
    Accept(number);
  }

  OwnedPartitions owned_{{.job_seed = 1,
                          .partition_count = 6,
                          .lane = 0,
                          .lane_count = 2,
                          .retry_pause = milliseconds(100)}};
  TimePoint now_{std::chrono::seconds(10)};
  uint64_t sequence_ = 0;
  std::string text_;
};

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
  EXPECT_EQ(owned_.Report(1).error, "file x is damaged");
  EXPECT_THAT(owned_.TakeLoads(now_ + milliseconds(99)), IsEmpty());
  const auto again = owned_.TakeLoads(now_ + milliseconds(100));
  ASSERT_THAT(again, SizeIs(1));
  owned_.Loaded(again[0].id, LoadedPartition(), now_);
  EXPECT_EQ(owned_.Report(2).error, "");
  EXPECT_EQ(Row(4, 7), 70);
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
  owned_.AddTable(SumTable(9, 3), nullptr);
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
  owned_.AddTable(SumTable(2, 1u << 29), nullptr);
  OwnEmpty(3);
  const PullReply reply = Pull(3, {7}, 2);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_THAT(reply.text, HasSubstr("pull fewer keys"));
  EXPECT_EQ(reply.values.size(), 0u);
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

TEST_F(OwnedPartitionsTest, ASnapshotIsReportedWholeUntilItIsAccepted) {
  OwnEmpty(3);
  Push(3, 7, 1);
  owned_.Report(1);
  Ask(10, 4, 3);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_TRUE(job->image.full);
  EXPECT_THAT(job->image.rows, SizeIs(1));
  EXPECT_EQ(job->number, Number(10));
  Ask(10, 4, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value()) << "the same command, asked again";
  EXPECT_THAT(owned_.Report(2).snapshots, IsEmpty()) << "not written yet";

  owned_.Written(kP, Number(10), SnapshotFile{"base", 100}, now_);
  EXPECT_TRUE(owned_.HasNews());
  for (uint64_t sequence : {3, 4}) {
    const LaneReport report = owned_.Report(sequence);
    ASSERT_THAT(report.snapshots, SizeIs(1));
    EXPECT_EQ(report.snapshots[0].manifest, (Manifest{Number(10), DoneSeq(4), {{"base", 100}}}));
    EXPECT_EQ(report.snapshots[0].epoch, OwnerEpoch(3));
  }
  Accept(10);
  const LaneReport report = owned_.Report(5);
  EXPECT_THAT(report.snapshots, IsEmpty());
  EXPECT_EQ(report.owned.at(0).accepted, Number(10));
  EXPECT_EQ(report.counters.snapshots, 1u);
  EXPECT_EQ(report.counters.snapshot_bytes, 100u);
}

TEST_F(OwnedPartitionsTest, AnUnchangedPartitionReportsItsCutWithoutAFile) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Ask(11, 8, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
  const LaneReport report = owned_.Report(2);
  ASSERT_THAT(report.snapshots, SizeIs(1));
  EXPECT_EQ(report.snapshots[0].manifest, (Manifest{Number(11), DoneSeq(8), {{"f10", 100}}}));
  Accept(11);
  Push(3, 8, 1, 1);
  Ask(12, 9, 3);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_FALSE(job->image.full);
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(8));
  owned_.Written(kP, Number(12), SnapshotFile{"delta", 5}, now_);
  EXPECT_EQ(owned_.Report(3).snapshots.at(0).manifest,
            (Manifest{Number(12), DoneSeq(9), {{"f10", 100}, {"delta", 5}}}));
}

TEST_F(OwnedPartitionsTest, AFailedWriteKeepsItsRowsAndRests) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Push(3, 8, 1, 1);
  Ask(11, 8, 3);
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), absl::ResourceExhaustedError("disk full: /snap"), now_);
  EXPECT_EQ(owned_.Report(2).error, "disk full: /snap");
  EXPECT_THAT(owned_.Report(2).snapshots, IsEmpty());
  EXPECT_FALSE(owned_.NextSnapshot(now_ + milliseconds(99)).has_value());
  const auto job = owned_.NextSnapshot(now_ + milliseconds(100));
  ASSERT_TRUE(job.has_value());
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(8));
  owned_.Written(kP, Number(11), SnapshotFile{"delta", 5}, now_);
  EXPECT_EQ(owned_.Report(3).error, "");
}

TEST_F(OwnedPartitionsTest, ASnapshotThatWasRefusedDoesNotTakeItsRowsWithIt) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Push(3, 8, 1, 1);
  Ask(11, 8, 3);
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), SnapshotFile{"refused", 5}, now_);
  Push(3, 9, 1, 2);
  owned_.Report(7);
  Ask(12, 9, 3, /*sequence=*/6);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value()) << "asked before the report came: it waits";
  Ask(13, 9, 3, /*sequence=*/7);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->number, Number(13));
  EXPECT_THAT(job->image.rows.at(0).keys, ::testing::UnorderedElementsAre(8, 9));
  owned_.Written(kP, Number(13), SnapshotFile{"delta", 5}, now_);
  EXPECT_THAT(owned_.Report(8).snapshots.at(0).manifest.files,
              ElementsAre(SnapshotFile{"f10", 100}, SnapshotFile{"delta", 5}));
}

TEST_F(OwnedPartitionsTest, AWaitingCommandRunsWhenTheOneBeforeItIsAccepted) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(11, 8, 3);
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  Ask(12, 9, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
  owned_.Written(kP, Number(11), SnapshotFile{"base", 5}, now_);
  owned_.Report(1);
  Push(3, 8, 1, 1);
  Accept(11);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->number, Number(12));
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(8));
}

TEST_F(OwnedPartitionsTest, CommandsOfAnotherEpochOrAnOlderNumberTakeNoSnapshot) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 2);
  Ask(10, 4, 4);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
  SnapshotAccepted(10, 3);
  Push(3, 8, 1, 1);
  Ask(9, 5, 3);
  Ask(10, 5, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_).has_value());
}

TEST_F(OwnedPartitionsTest, ANewEpochDropsTheSnapshotsOfTheOldOne) {
  OwnEmpty(3);
  Push(3, 7, 1);
  Ask(10, 4, 3);
  ASSERT_TRUE(owned_.NextSnapshot(now_).has_value());
  Own({kP, OwnerEpoch(4), OwnerEpoch(3), {}, false, {}});
  owned_.Written(kP, Number(10), SnapshotFile{"old", 5}, now_);
  EXPECT_THAT(owned_.Report(1).snapshots, IsEmpty());
  Ask(11, 5, 4);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->epoch, OwnerEpoch(4));
  EXPECT_THAT(job->image.rows.at(0).keys, ElementsAre(7));
}

TEST_F(OwnedPartitionsTest, AnUnknownAcceptedSnapshotMakesTheNextOneABase) {
  OwnEmpty(3);
  Push(3, 7, 1);
  SnapshotAccepted(10, 3);
  Accept(15);
  Ask(16, 5, 3);
  const auto job = owned_.NextSnapshot(now_);
  ASSERT_TRUE(job.has_value());
  EXPECT_TRUE(job->image.full);
  owned_.Written(kP, Number(16), SnapshotFile{"base", 5}, now_);
  EXPECT_THAT(owned_.Report(2).snapshots.at(0).manifest.files,
              ElementsAre(SnapshotFile{"base", 5}));
  Accept(16);
  Push(3, 8, 1, 1);
  Ask(17, 5, 3);
  EXPECT_FALSE(owned_.NextSnapshot(now_)->image.full);
}

}  // namespace
}  // namespace muster::ps
