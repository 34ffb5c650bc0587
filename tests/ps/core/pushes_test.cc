#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

constexpr PartitionId kOther(4);

TEST_F(OwnedPartitionsTest, QuestionsAreForTheOwnerAndCountAsNoParts) {
  OwnEmpty(3);
  Push(3, 7, 1);
  const auto ask = [&](uint64_t epoch, uint32_t minibatch) {
    const wire::PushIdentity push{.minibatch = minibatch, .token = Token(9).value()};
    const wire::Parts parts(kP.value(), epoch, {});
    PushReply reply;
    progress_ = PushWhole({.push = push, .parts = parts}, &owned_, &reply);
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

TEST_F(OwnedPartitionsTest, UnknownTablesAreRetriedAndWrongWidthsRefused) {
  OwnEmpty(3);
  Own({kOther, OwnerEpoch(3), OwnerEpoch(3), {}, true, {}});
  EXPECT_EQ(Pull(3, {7}, 9).parts.at(0).code, PartCode::kRetry);
  const wire::PushIdentity push{.token = Token(9).value()};
  const auto parts_of = [](uint32_t second_table) {
    wire::Parts parts(kP.value(), 3, {{.table = kTable, .keys = 1}});
    parts.Add(kOther.value(), 3, {{.table = second_table, .keys = 1}});
    return parts;
  };
  wire::Parts parts = parts_of(9);
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<float> values(5, 1.0f);
  PushReply reply;
  progress_ =
      PushWhole({.push = push, .parts = parts, .keys = keys, .values = values}, &owned_, &reply);
  EXPECT_THAT(reply.parts, ElementsAre(wire::PartReply{.partition = 2, .code = PartCode::kRetry},
                                       wire::PartReply{.partition = 4, .code = PartCode::kRetry}));
  parts = parts_of(kTable);
  reply = {};
  progress_ =
      PushWhole({.push = push, .parts = parts, .keys = keys, .values = values}, &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kBadRequest);
  EXPECT_THAT(reply.text,
              HasSubstr("5 values, but its keys and the widths of its tables require 4"));
  EXPECT_EQ(Row(3, 1), 0) << "nothing may have been applied";
  owned_.AddTable(SumTable(9, 3));
  parts = parts_of(9);
  reply = {};
  progress_ =
      PushWhole({.push = push, .parts = parts, .keys = keys, .values = values}, &owned_, &reply);
  EXPECT_THAT(reply.parts,
              ElementsAre(wire::PartReply{.partition = 2}, wire::PartReply{.partition = 4}));
}

TEST_F(OwnedPartitionsTest, PartsOfOnePushStandOrFallAlone) {
  OwnEmpty(3);
  const wire::PushIdentity push{.token = Token(9).value()};
  wire::Parts parts(kP.value(), 2, {{.table = kTable, .keys = 1}});
  parts.Add(kP.value(), 3, {{.table = kTable, .keys = 1}});
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<float> values = {1, 1, 2, 2};
  PushReply reply;
  progress_ =
      PushWhole({.push = push, .parts = parts, .keys = keys, .values = values}, &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kWrongOwner);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kOk);
  EXPECT_EQ(Row(3, 1), 0);
  EXPECT_EQ(Row(3, 2), 2);
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
