#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

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
  wire::Parts parts;
  for (const uint32_t keys : {3, 3, 2}) {
    parts.Add(kP.value(), 3, {{.table = kTable, .keys = keys}});
  }
  const std::vector<uint64_t> keys = {1, 2, 3, 4, 5, 6, 7, 8};
  PullReply reply;
  progress_ = PullWhole({.parts = parts, .keys = keys}, &owned, &reply);
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
  const wire::Parts parts(kP.value(), 3, {{.table = kTable, .keys = 2}});
  PullReply reply;
  progress_ = PullWhole({.parts = parts, .keys = keys, .encoding = wire::Encoding::kFloat16},
                        &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.values.size(), 0u);
  EXPECT_THAT(reply.text, HasSubstr("table 't': the row of key 7 has 70000 in column 0, but "
                                    "float16 ends at 65504"));
  reply = {};
  progress_ = PullWhole({.parts = parts, .keys = keys, .encoding = wire::Encoding::kBfloat16},
                        &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kOk);
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
