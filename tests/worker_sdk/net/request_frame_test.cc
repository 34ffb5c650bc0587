#include "worker_sdk/net/internal/request_frame.h"

#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/core/core_fixture.h"

namespace muster::sdk::net_internal {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SendRequest PushRequest(std::vector<uint32_t> parts) {
  SendRequest request;
  request.id = RequestId(42);
  request.push = PushIdentity{{DatasetId(1), EpochIndex(2), ShardIndex(3)},
                              MinibatchIndex(4),
                              LeaseToken::FromValue(5),
                              RunNumber(6),
                              7,
                              RestoreEpoch(8)};
  request.batch = BatchOfAllPartitions();
  for (uint32_t part : parts) request.items.push_back({part, OwnerEpoch(10 + part)});
  return request;
}

std::string Flatten(const RequestFrame& frame, size_t first_piece) {
  std::string bytes;
  for (size_t i = first_piece; i < frame.pieces.size(); ++i) {
    bytes.append(reinterpret_cast<const char*>(frame.pieces[i].data()), frame.pieces[i].size());
  }
  return bytes;
}

TEST(RequestFrameTest, ANeighbouringRangeOfPartsIsOnePieceOfKeysAndOneOfValues) {
  SendRequest request = PushRequest({2, 3, 4});
  RequestFrame frame;
  BuildFrame(request, wire::Encoding::kFloat32, wire::Checksum::kXxh3, &frame);
  EXPECT_EQ(frame.pieces.size(), 4u);
  MUSTER_ASSERT_OK_AND_ASSIGN(wire::Header header, wire::DecodeHeader(frame.header));
  EXPECT_EQ(header.kind, wire::Kind::kPush);
  EXPECT_EQ(header.request, 42u);
  EXPECT_EQ(header.keys, 3u);
  EXPECT_EQ(header.value_bytes, 3u * 2 * 4);
  EXPECT_EQ(header.checksum_kind, wire::Checksum::kXxh3);
  const std::string blocks = Flatten(frame, 1);
  EXPECT_EQ(header.checksum, wire::ChecksumOf(blocks, {}, {}));
  wire::PushIdentity push;
  wire::Parts parts;
  ASSERT_THAT(wire::DecodePush(header, frame.directory, &push, &parts), ::muster::testing::IsOk());
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(push, (wire::PushIdentity{.dataset = 1,
                                      .epoch = 2,
                                      .shard_index = 3,
                                      .minibatch = 4,
                                      .run = 6,
                                      .token = 5,
                                      .step = 7}));
  const wire::Parts expected(request.batch->plan.parts[3].partition.value(), 13,
                             {{.table = 1, .keys = 1}});
  EXPECT_EQ(parts[1], expected[0]);
}

TEST(RequestFrameTest, ScatteredPartsAndShortEncodings) {
  SendRequest request = PushRequest({0, 5});
  RequestFrame frame;
  BuildFrame(request, wire::Encoding::kFloat32, wire::Checksum::kXxh3, &frame);
  EXPECT_EQ(frame.pieces.size(), 6u);
  RequestFrame half;
  BuildFrame(request, wire::Encoding::kFloat16, wire::Checksum::kXxh3, &half);
  MUSTER_ASSERT_OK_AND_ASSIGN(wire::Header header, wire::DecodeHeader(half.header));
  EXPECT_EQ(header.value_bytes, 2u * 2 * 2);
  std::string values = Flatten(half, half.pieces.size() - 1);
  EXPECT_EQ(values, std::string("\0\x3c\0\x3c\0\x3c\0\x3c", 8));  // 1.0 in binary16
}

TEST(RequestFrameTest, APullHasNoValues) {
  SendRequest request = PushRequest({1});
  request.push.reset();
  RequestFrame frame;
  BuildFrame(request, wire::Encoding::kFloat32, wire::Checksum::kXxh3, &frame);
  MUSTER_ASSERT_OK_AND_ASSIGN(wire::Header header, wire::DecodeHeader(frame.header));
  EXPECT_EQ(header.kind, wire::Kind::kPull);
  EXPECT_EQ(header.value_bytes, 0u);
  wire::Parts parts;
  ASSERT_THAT(wire::DecodePull(header, frame.directory, &parts), ::muster::testing::IsOk());
  EXPECT_EQ(parts[0].owner_epoch, 11u);
}

/// Parts 0, 1 and 2 of a dense tensor; of the first and the last one the worker holds versions.
SendRequest DensePull() {
  SendRequest request = PushRequest({0, 1, 2});
  request.push.reset();
  auto batch = std::make_shared<RowBatch>(*request.batch);
  for (PlanGroup& group : batch->plan.groups) group.dense = true;
  request.batch = batch;
  request.versions = {5, wire::kNoVersion, 7};
  return request;
}

TEST(RequestFrameTest, APullOfADenseTensorAsksByVersion) {
  SendRequest request = DensePull();
  RequestFrame frame;
  BuildFrame(request, wire::Encoding::kFloat32, wire::Checksum::kXxh3, &frame);
  MUSTER_ASSERT_OK_AND_ASSIGN(wire::Header header, wire::DecodeHeader(frame.header));
  EXPECT_EQ(header.versions, 3u);
  wire::Parts parts;
  ASSERT_THAT(wire::DecodePull(header, frame.directory, &parts), ::muster::testing::IsOk());
  EXPECT_EQ(parts[0].groups[0].version, 5u);
  EXPECT_EQ(parts[1].groups[0].version, wire::kNoVersion);
  EXPECT_EQ(parts[2].groups[0].version, 7u);
  request.push = PushIdentity{};
  request.versions.clear();
  BuildFrame(request, wire::Encoding::kFloat32, wire::Checksum::kXxh3, &frame);
  MUSTER_ASSERT_OK_AND_ASSIGN(header, wire::DecodeHeader(frame.header));
  EXPECT_EQ(header.versions, 0u) << "a push has none";
}

TEST(RequestFrameTest, GroupsThatAreUnchangedHaveNoRowsInAnAnswer) {
  const SendRequest request = DensePull();
  wire::Reply reply;
  for (const SendRequest::Item& item : request.items) {
    reply.parts.push_back({request.batch->plan.parts[item.part].partition.value()});
  }
  wire::Header header;
  header.kind = wire::Kind::kPullReply;
  uint64_t floats = 0;
  const auto floats_with = [&](std::vector<uint64_t> versions) {
    reply.versions = std::move(versions);
    for (header.value_bytes = 0; header.value_bytes < 100; header.value_bytes += 4) {
      if (CheckReply(request, header, reply, &floats).ok()) return floats;
    }
    return uint64_t{100};
  };
  EXPECT_EQ(floats_with({5, wire::kNoVersion, 7}), 2u) << "none is held of the second";
  EXPECT_EQ(floats_with({7, 9, 5}), 6u);
  EXPECT_EQ(floats_with({6, 9, 7}), 4u);
  EXPECT_THAT(CheckReply(request, header, {reply.parts, {5, 9}, ""}, &floats),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 versions was answered")));
  reply.parts[2].code = wire::PartCode::kRetry;
  EXPECT_EQ(floats_with({6, 9, wire::kNoVersion}), 4u);
}

TEST(RequestFrameTest, AnswersAreCheckedAgainstTheirRequest) {
  SendRequest request = PushRequest({0, 1});
  request.push.reset();
  auto partition = [&](uint32_t part) { return request.batch->plan.parts[part].partition.value(); };
  wire::Reply reply{
      {{partition(0), wire::PartCode::kOk, false}, {partition(1), wire::PartCode::kRetry, false}},
      {},
      ""};
  wire::Header header;
  header.kind = wire::Kind::kPullReply;
  header.value_bytes = 8;
  uint64_t floats = 0;
  EXPECT_THAT(CheckReply(request, header, reply, &floats), IsOk());
  EXPECT_EQ(floats, 2u);
  auto refused = [&](std::string_view text) {
    EXPECT_THAT(CheckReply(request, header, reply, &floats),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(text))));
  };
  header.value_bytes = 16;
  refused("16 bytes of values instead of 8");
  header.kind = wire::Kind::kPushReply;
  refused("kind 6");
  header.kind = wire::Kind::kPullReply;
  reply.parts[0].partition = 99;
  refused("partition 99");
  reply.parts.pop_back();
  refused("answered with 1");
}

}  // namespace
}  // namespace muster::sdk::net_internal
