#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

TEST_F(OwnedPartitionsTest, QuestionsAreForTheOwnerAndCountAsNoParts) {
  OwnEmpty(3);
  Push(3, 7, 1);
  const auto ask = [&](uint64_t epoch, uint32_t minibatch) {
    wire::PushPart part{.partition = kP.value(), .owner_epoch = epoch, .minibatch = minibatch};
    part.token = Token(9).value();
    PushReply reply;
    progress_ = PushWhole({.parts = {&part, 1}}, &owned_, &reply);
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
  progress_ = PushWhole({.parts = parts, .keys = keys, .values = values}, &owned_, &reply);
  EXPECT_THAT(reply.parts, ElementsAre(wire::PartReply{.partition = 2, .code = PartCode::kRetry},
                                       wire::PartReply{.partition = 2, .code = PartCode::kRetry}));
  parts[1].groups[0].table = kTable;
  reply = {};
  progress_ = PushWhole({.parts = parts, .keys = keys, .values = values}, &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kBadRequest);
  EXPECT_THAT(reply.text, HasSubstr("5 values, its keys and the widths of its tables make 4"));
  EXPECT_EQ(Row(3, 1), 0) << "nothing may have been applied";
  owned_.AddTable(SumTable(9, 3));
  parts[1].groups[0].table = 9;
  reply = {};
  progress_ = PushWhole({.parts = parts, .keys = keys, .values = values}, &owned_, &reply);
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
  progress_ = PushWhole({.parts = parts, .keys = keys, .values = values}, &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kWrongOwner);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kOk);
  EXPECT_EQ(Row(3, 1), 0);
  EXPECT_EQ(Row(3, 2), 2);
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
