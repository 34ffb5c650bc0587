#include "master/journal/record_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

#include "proto/journal.pb.h"
#include "tests/master/journal/sample_records.h"
#include "tests/proto/fields/listing.h"
#include "tests/proto/fields/message_checks.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST(RecordCodec, EveryRecordSurvives) {
  DurableState before, after;
  for (const Mutation& mutation : testing::SampleRecords()) {
    Apply(mutation, &before);
    const StoreChange change = Encode(mutation);
    MUSTER_ASSERT_OK_AND_ASSIGN(const Mutation decoded, Decode(change.key, change.value.value()));
    Apply(decoded, &after);
  }
  EXPECT_EQ(testing::Stored(before), testing::Stored(after));
  // Field by field where a forgotten field would encode the same way twice.
  const MetaRecord& meta = *after.meta;
  EXPECT_EQ(meta.incarnation, MasterIncarnation(3));
  EXPECT_EQ(meta.done_seq, DoneSeq(12));
  EXPECT_EQ(meta.commit_seq, DoneSeq(9));
  EXPECT_EQ(meta.map_version, MapVersion(4));
  EXPECT_EQ(meta.restore_epoch, RestoreEpoch(5));
  EXPECT_EQ(meta.newest_server_incarnation, ServerIncarnation(6));
  EXPECT_EQ(meta.state, JobState::kDraining);
  EXPECT_EQ(meta.run_id, "run-1");
  EXPECT_EQ(meta.totals, before.meta->totals);
  EXPECT_EQ(after.done.at(DoneSeq(10)).metrics, before.done.at(DoneSeq(10)).metrics);
  EXPECT_EQ(after.done.at(DoneSeq(10)).done, before.done.at(DoneSeq(10)).done);
  EXPECT_EQ(after.done.at(DoneSeq(10)).worker, "worker-0");
  const auto epoch_key = std::pair(DatasetId(1), EpochIndex(2));
  EXPECT_EQ(after.epochs.at(epoch_key).committed, before.epochs.at(epoch_key).committed);
  EXPECT_EQ(after.epochs.at(epoch_key).metrics, before.epochs.at(epoch_key).metrics);
  EXPECT_EQ(after.epochs.at(epoch_key).records_committed, 80u);
  EXPECT_EQ(after.partitions.at(PartitionId(8)).entry, before.partitions.at(PartitionId(8)).entry);
  EXPECT_EQ(after.partitions.at(PartitionId(8)).manifest,
            before.partitions.at(PartitionId(8)).manifest);
  EXPECT_EQ(after.tables, before.tables);
  EXPECT_EQ(after.nodes.at("ps-0").lanes, before.nodes.at("ps-0").lanes);
  EXPECT_EQ(after.nodes.at("ps-0").superseded_nonces, (std::vector<uint64_t>{75, 76}));
  EXPECT_EQ(after.nodes.at("ps-0").nonce, 77u);
  EXPECT_EQ(after.nodes.at("ps-0").start, StartNumber(16));
  EXPECT_EQ(after.nodes.at("ps-0").told_start, StartNumber(3));
  EXPECT_EQ(after.nodes.at("ps-0").exit_told, StartNumber(2));
  EXPECT_EQ(after.nodes.at("ps-0").stale_now, 4u);
  EXPECT_TRUE(after.failures.at(testing::SampleShard(4)).failed);
  EXPECT_EQ(after.failures.at(testing::SampleShard(4)).reasons.size(), 2u);
  EXPECT_EQ(after.failures.at(testing::SampleShard(4)).charged,
            LeaseToken(MasterIncarnation(2), 9));
}

TEST(RecordCodec, ANodeOfAnOlderJournalHasItsRestarts) {
  const StoreChange change = Encode(NodeRecord{.name = "ps-0"});
  for (uint32_t restarts : {0u, 2u}) {
    v1::JournalNode old;
    ASSERT_TRUE(old.ParseFromString(change.value.value()));
    old.set_restarts(restarts);
    MUSTER_ASSERT_OK_AND_ASSIGN(const Mutation decoded,
                                Decode(change.key, old.SerializeAsString()));
    const StartNumber told = std::get<NodeRecord>(decoded).told_start;
    EXPECT_EQ(told, restarts == 0 ? StartNumber() : StartNumber(3));
  }
}

template <typename Struct, typename Proto>
struct Pair {
  using S = Struct;
  static const google::protobuf::Descriptor& descriptor() { return *Proto::descriptor(); }
};
using Records = ::testing::Types<
    Pair<MetaRecord, v1::JournalMeta>, Pair<DoneRecord, v1::JournalDone>,
    Pair<EpochRecord, v1::JournalEpoch>, Pair<FailureRecord, v1::JournalFailure>,
    Pair<PartitionRecord, v1::JournalPartition>, Pair<TableSpec, v1::Table>,
    Pair<NodeRecord, v1::JournalNode>, Pair<EventRecord, v1::JournalEvent>,
    Pair<StreamRecord, v1::JournalStream>, Pair<StreamPositionRecord, v1::JournalStreamPosition>,
    Pair<StreamShardRecord, v1::JournalStreamShard>, Pair<KeptRecord, v1::JournalKept>,
    Pair<GroupModelRecord, v1::JournalGroupModel>, Pair<GroupRecord, v1::JournalGroup>,
    Pair<StepRecord, v1::JournalStep>, Pair<CheckpointRecord, v1::JournalCheckpoint>>;
/// What only older journals have.
const std::set<std::string> kOld = {"restarts"};

template <typename Record>
class RecordLists : public ::testing::Test {
 protected:
  static std::set<std::string> Absent() {
    return std::is_same_v<typename Record::S, NodeRecord> ? kOld : std::set<std::string>();
  }
};
TYPED_TEST_SUITE(RecordLists, Records);

TYPED_TEST(RecordLists, TheListIsTheMessage) {
  testing::ExpectSame(testing::Listing::All<typename TypeParam::S>(), TypeParam::descriptor(),
                      fields::Side::kOwnDisk, this->Absent());
}
TYPED_TEST(RecordLists, EveryFieldIsStoredAndRead) {
  testing::ExpectRoundTrip<typename TypeParam::S>(TypeParam::descriptor(), fields::Side::kOwnDisk,
                                                  this->Absent());
}
TYPED_TEST(RecordLists, DamagedBytesAreSurvived) {
  testing::ExpectDamageIsSurvived<typename TypeParam::S>(fields::Side::kOwnDisk);
}

TEST(RecordCodec, WhatWasWrittenIsReadWhateverItsSizeAndItsBytes) {
  EpochRecord epoch{.dataset = DatasetId(1)};
  for (int i = 0; i < 1'024; ++i) epoch.metrics.means[std::to_string(i)] = {1, 2};
  epoch.metrics.means[std::string(5'000, '\xff')] = {3, 4};
  epoch.metrics.reject_samples = {"a.csv:3: \xff"};
  const StoreChange change = Encode(epoch);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Mutation read, Decode(change.key, change.value.value()));
  EXPECT_EQ(std::get<EpochRecord>(read).metrics, epoch.metrics);

  // A table and a manifest come from peers, and are checked as when they came.
  const StoreChange table = Encode(TableSpec{.id = TableId(1), .name = std::string(257, 'x')});
  EXPECT_THAT(Decode(table.key, table.value.value()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("257 bytes")));
  PartitionRecord partition;
  partition.manifest.files.resize(1'025);
  const StoreChange files = Encode(partition);
  EXPECT_THAT(Decode(files.key, files.value.value()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1025 entries")));
}

TEST(RecordCodec, WhatCannotBeIsDataLoss) {
  const auto refusal = [](const Mutation& record) {
    const StoreChange change = Encode(record);
    return Decode(change.key, change.value.value()).status();
  };
  const auto says = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(text));
  };
  DoneRecord done;
  done.metrics.aucs["auc"] = {{5, 4}, {1, 1}, {1, 1}};
  EXPECT_THAT(refusal(done), says("'auc': bin 4 comes after bin 5"));
  EXPECT_THAT(refusal(MetaRecord{.state = static_cast<JobState>(7)}), says("state: 7 is not"));
  EXPECT_THAT(refusal(StreamPositionRecord{DatasetId(1), {TopicPartition(0), 3, 2, {}}}),
              says("cut before its begin"));
  EXPECT_THAT(refusal(StreamShardRecord{{}, {{{TopicPartition(0), 3, 3}}, 0, {}}}),
              says("an empty range of offsets"));
  EXPECT_THAT(refusal(StreamShardRecord{}), says("before 0.3"));
}

TEST(RecordCodec, TheHeaderIsTheMessage) {
  v1::JournalHeader header;
  ASSERT_TRUE(header.ParseFromString(
      EncodeHeader({"job", {{"a", "b"}, {"c", ""}}, {{"train", "x"}}, "id"})));
  EXPECT_EQ(header.format(), kJournalFormat);
  EXPECT_EQ(header.job(), "job");
  ASSERT_EQ(header.fixed_fields_size(), 2);
  EXPECT_EQ(header.fixed_fields(0).name(), "a");
  EXPECT_EQ(header.fixed_fields(0).value(), "b");
  EXPECT_EQ(header.sources(0).name(), "train");
  EXPECT_EQ(header.job_id(), "id");
  MUSTER_ASSERT_OK_AND_ASSIGN(const JournalHeader read, DecodeHeader(header.SerializeAsString()));
  EXPECT_EQ(read.fixed_fields[1], (std::pair<std::string, std::string>{"c", ""}));
}

TEST(RecordCodec, KeysOfAKindSortByTheirIds) {
  const auto key = [](uint64_t seq) {
    return Encode(DoneRecord{{DoneSeq(seq), {}, {}}, "", {}}).key;
  };
  EXPECT_LT(key(1), key(2));
  EXPECT_LT(key(255), key(256));
  EXPECT_LT(key(65535), key(65536));
  const StoreChange erase = Encode(EraseDone{DoneSeq(2), DoneSeq(255)});
  EXPECT_GT(erase.key, key(1));
  EXPECT_EQ(erase.key, key(2));
  EXPECT_EQ(erase.end, key(256));
}

TEST(RecordCodec, ADamagedRecordIsNamed) {
  EXPECT_THAT(Decode("d1", "\xff\xff"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("6431")));
  EXPECT_THAT(Decode("?", ""), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("unknown kind")));
}

TEST(RecordCodec, AValueUnderAnotherKeyIsRefused) {
  for (const Mutation& mutation : testing::SampleRecords()) {
    const StoreChange change = Encode(mutation);
    EXPECT_THAT(Decode(change.key, change.value.value()), IsOk());
    EXPECT_THAT(Decode(change.key + "x", change.value.value()),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another key")));
  }
}

TEST(RecordCodec, ANewerFormatIsRefused) {
  std::string header = EncodeHeader({"job", {{"a", "b"}}, {{"train", "x"}}});
  MUSTER_ASSERT_OK_AND_ASSIGN(const JournalHeader decoded, DecodeHeader(header));
  EXPECT_EQ(decoded.job, "job");
  EXPECT_EQ(decoded.sources[0].second, "x");
  header[1] = 2;  // field 1, the format
  EXPECT_THAT(DecodeHeader(header),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("format 2")));
}

}  // namespace
}  // namespace muster
