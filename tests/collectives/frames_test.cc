#include "collectives/frames.h"

#include <gmock/gmock.h>

#include <array>

#include "base/random.h"
#include "base/status.h"
#include "base/words/limits.h"
#include "tests/support/status_matchers.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

using Bytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeader Chunk() {
  return {.kind = FrameKind::kChunk,
          .type = SumType::kInt64,
          .checked = false,
          .lineage = LineageNumber(3),
          .attempt = AttemptNumber(70),
          .step = StepNumber(1'000'000),
          .bucket = 5,
          .chunk = 2,
          .elements = 1000,
          .payload_bytes = 800,
          .checksum = 0};
}

Bytes Encoded(const FrameHeader& header) {
  Bytes bytes;
  EncodeFrameHeader(header, bytes);
  return bytes;
}

TEST(FramesTest, AHeaderIsReadAsItWasWritten) {
  EXPECT_EQ(DecodeFrameHeader(Encoded(Chunk())).value(), Chunk());
}

TEST(FramesTest, EveryLimitIsChecked) {
  const auto refuses = [](auto change, std::string_view text) {
    FrameHeader header = Chunk();
    change(&header);
    EXPECT_THAT(DecodeFrameHeader(Encoded(header)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(text))));
  };
  refuses([](FrameHeader* h) { h->bucket = most::kGroupTensors; }, "the bucket is 65536");
  refuses([](FrameHeader* h) { h->elements = kPayloadBytesMax + 1; }, "the number of elements");
  refuses([](FrameHeader* h) { h->payload_bytes = 8008; }, "the size of the payload is 8008");
  refuses([](FrameHeader* h) { h->payload_bytes = 801; }, "no whole number of elements");
  refuses([](FrameHeader* h) { h->kind = static_cast<FrameKind>(9); }, "the kind is 9");
  refuses([](FrameHeader* h) { h->type = static_cast<SumType>(3); }, "the type is 3");
  refuses([](FrameHeader* h) { h->kind = FrameKind::kLeave; }, "the limit is 0");
  refuses(
      [](FrameHeader* h) {
        h->kind = FrameKind::kHello;
        h->payload_bytes = kMessageBytesMax + 1;
      },
      "the limit is 16384");
}

TEST(FramesTest, AnotherVersionIsNamed) {
  Bytes bytes = Encoded(Chunk());
  bytes[4] = std::byte{9};
  EXPECT_THAT(DecodeFrameHeader(bytes).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version 9")));
}

TEST(FramesTest, ADamagedHeaderOrPayloadIsNoticed) {
  std::string payload(800, 'p');
  FrameHeader header = Chunk();
  Bytes bytes;
  EncodeCheckedFrameHeader(header, std::as_bytes(std::span(payload)), bytes);
  header = DecodeFrameHeader(bytes).value();
  EXPECT_THAT(CheckFrame(header, std::as_bytes(std::span(payload))), IsOk());
  for (size_t bit = 0; bit < 8 * payload.size(); bit += 97) {
    std::string damaged = payload;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THAT(CheckFrame(header, std::as_bytes(std::span(damaged))),
                StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const absl::StatusOr<FrameHeader> read = DecodeFrameHeader(damaged);
    EXPECT_TRUE(!read.ok() || !read->checked ||
                !CheckFrame(*read, std::as_bytes(std::span(payload))).ok())
        << "bit " << bit;
  }
}

TEST(FramesTest, GarbageIsRefusedOrWithinTheLimits) {
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = Encoded(Chunk());
    for (int damage = 0; damage < 4; ++damage) {
      bytes[4 + rng.Below(60)] = static_cast<std::byte>(rng.Below(256));
    }
    const absl::StatusOr<FrameHeader> read = DecodeFrameHeader(bytes);
    if (!read.ok()) continue;
    EXPECT_LE(read->payload_bytes, kPayloadBytesMax);
    EXPECT_LT(read->bucket, most::kGroupTensors);
  }
}

TEST(FramesTest, MessagesAreReadAsTheyWereWritten) {
  const Hello hello{.job_id = "id-1",
                    .worker = "worker-0",
                    .incarnation = 17,
                    .to_worker = "worker-1",
                    .to_incarnation = 18,
                    .lineage = LineageNumber(2),
                    .attempt = AttemptNumber(9),
                    .members = 4,
                    .rank = 1,
                    .to_rank = 2,
                    .checked = true};
  EXPECT_EQ(DecodeMessage<Hello>(EncodeMessage(hello)).value(), hello);
  const HelloReply reply{.refused = "no", .again = true};
  EXPECT_EQ(DecodeMessage<HelloReply>(EncodeMessage(reply)).value(), reply);
  const FetchRequest request{.kept_sum = true,
                             .label = {LineageNumber(1), StepNumber(2)},
                             .number = 3,
                             .offset = 4,
                             .bytes = 5};
  EXPECT_EQ(DecodeMessage<FetchRequest>(EncodeMessage(request)).value(), request);
  const FetchError error{.not_found = true, .text = "gone"};
  EXPECT_EQ(DecodeMessage<FetchError>(EncodeMessage(error)).value(), error);
  EXPECT_THAT(DecodeMessage<Hello>("\xff\xff\xff").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(DecodeMessage<Hello>(EncodeMessage(Hello{.members = 5000})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("members")));
}

}  // namespace
}  // namespace muster::collectives
