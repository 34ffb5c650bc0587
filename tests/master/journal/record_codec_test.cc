#include "master/journal/record_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/journal.pb.h"
#include "tests/master/journal/sample_records.h"
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
