#include "proto/wire/frame.h"

#include <array>
#include <cstring>
#include <functional>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::wire {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

Header PushHeader() {
  Header header;
  header.kind = Kind::kPush;
  header.request = 0x0102030405060708;
  header.directory_bytes = 72;
  header.parts = 1;
  header.keys = 3;
  header.value_bytes = 96;
  header.encoding = Encoding::kFloat16;
  header.checksum_kind = Checksum::kXxh3;
  header.checksum = 0xfedcba9876543210;
  return header;
}

HeaderBytes Encoded(const Header& header) {
  HeaderBytes bytes;
  EncodeHeader(header, bytes);
  return bytes;
}

template <typename T>
void Poke(HeaderBytes* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

TEST(FrameTest, HeaderRoundTrip) {
  const Header in = PushHeader();
  MUSTER_ASSERT_OK_AND_ASSIGN(const Header out, DecodeHeader(Encoded(in)));
  EXPECT_EQ(out.kind, in.kind);
  EXPECT_EQ(out.request, in.request);
  EXPECT_EQ(out.directory_bytes, in.directory_bytes);
  EXPECT_EQ(out.parts, in.parts);
  EXPECT_EQ(out.keys, in.keys);
  EXPECT_EQ(out.value_bytes, in.value_bytes);
  EXPECT_EQ(out.encoding, in.encoding);
  EXPECT_EQ(out.checksum_kind, in.checksum_kind);
  EXPECT_EQ(out.checksum, in.checksum);
}

// The layout is a contract with other programs: fixed bytes, not only a round trip.
TEST(FrameTest, HeaderLayoutIsTheDocumentedOne) {
  const HeaderBytes bytes = Encoded(PushHeader());
  const std::array<uint8_t, kHeaderBytes> expected = {
      0x52, 0x54, 0x53, 0x4d, 6,    0,    5,    0,    8, 7, 6, 5, 4, 3, 2, 1,
      72,   0,    0,    0,    1,    0,    0,    0,    3, 0, 0, 0, 0, 0, 0, 0,
      96,   0,    0,    0,    0,    0,    0,    0,    1, 1, 0, 0, 0, 0, 0, 0,
      0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), kHeaderBytes), 0);
}

TEST(FrameTest, AnotherVersionNamesBoth) {
  HeaderBytes bytes = Encoded(PushHeader());
  Poke<uint16_t>(&bytes, 4, 9);
  EXPECT_THAT(DecodeHeader(bytes), StatusIs(absl::StatusCode::kFailedPrecondition,
                                            AllOf(HasSubstr("version 9"), HasSubstr("version 6"))));
}

TEST(FrameTest, MalformedHeadersAreRefusedWithTheValue) {
  struct Case {
    const char* name;
    std::function<void(HeaderBytes*)> breaks;
    const char* message;
  };
  const Case cases[] = {
      {"magic", [](HeaderBytes* b) { Poke<uint32_t>(b, 0, 0x20544547); }, "0x20544547"},
      {"kind 0", [](HeaderBytes* b) { Poke<uint16_t>(b, 6, 0); }, "unknown kind 0"},
      {"kind 8", [](HeaderBytes* b) { Poke<uint16_t>(b, 6, 8); }, "unknown kind 8"},
      {"encoding", [](HeaderBytes* b) { Poke<uint8_t>(b, 40, 3); }, "unknown encoding 3"},
      {"checksum", [](HeaderBytes* b) { Poke<uint8_t>(b, 41, 2); }, "unknown checksum 2"},
      {"zero16", [](HeaderBytes* b) { Poke<uint16_t>(b, 42, 1); }, "reserved"},
      {"push with versions", [](HeaderBytes* b) { Poke<uint32_t>(b, 44, 1); }, "no versions"},
      {"more versions than bytes",
       [](HeaderBytes* b) {
         Poke<uint16_t>(b, 6, 3);
         Poke<uint64_t>(b, 32, 0);
         Poke<uint32_t>(b, 44, 10);
       },
       "cannot hold the 10 versions"},
      {"zero64", [](HeaderBytes* b) { Poke<uint64_t>(b, 56, 1); }, "reserved"},
      {"directory", [](HeaderBytes* b) { Poke<uint32_t>(b, 16, kDirectoryBytesMax + 1); },
       "16777217"},
      {"parts", [](HeaderBytes* b) { Poke<uint32_t>(b, 20, kPartsMax + 1); }, "65537"},
      {"keys", [](HeaderBytes* b) { Poke<uint64_t>(b, 24, kKeysMax + 1); }, "16777217"},
      {"values", [](HeaderBytes* b) { Poke<uint64_t>(b, 32, kValueBytesMax + 2); }, "1073741826"},
      {"half a value", [](HeaderBytes* b) { Poke<uint64_t>(b, 32, 97); }, "whole number"},
      {"hello with parts", [](HeaderBytes* b) { Poke<uint16_t>(b, 6, 1); }, "no parts"},
      {"pull with values", [](HeaderBytes* b) { Poke<uint16_t>(b, 6, 3); }, "no values"},
      {"reply with keys", [](HeaderBytes* b) { Poke<uint16_t>(b, 6, 4); }, "no keys"},
  };
  for (const Case& c : cases) {
    HeaderBytes bytes = Encoded(PushHeader());
    c.breaks(&bytes);
    EXPECT_THAT(DecodeHeader(bytes),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.name;
  }
}

TEST(FrameTest, TheLimitsThemselvesAreAllowed) {
  Header header = PushHeader();
  header.directory_bytes = kDirectoryBytesMax;
  header.parts = kPartsMax;
  header.keys = kKeysMax;
  header.value_bytes = kValueBytesMax;
  EXPECT_THAT(DecodeHeader(Encoded(header)), IsOk());
}

TEST(FrameTest, RandomHeadersNeverCrash) {
  Rng rng(1);
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    HeaderBytes bytes = Encoded(PushHeader());
    for (uint64_t flips = rng.Below(3); flips-- > 0;) {
      bytes[rng.Below(kHeaderBytes)] = static_cast<std::byte>(rng.Next());
    }
    const auto header = DecodeHeader(bytes);
    if (!header.ok()) continue;
    ++accepted;
    EXPECT_LE(header->value_bytes, kValueBytesMax);
    EXPECT_LE(header->keys, kKeysMax);
  }
  EXPECT_GT(accepted, 0);
}

TEST(FrameTest, ChecksumCoversEveryBlockInOrder) {
  const std::vector<uint64_t> keys = {1, 2, 3};
  const uint64_t base = ChecksumOf("directory", keys, "values");
  EXPECT_NE(ChecksumOf("Directory", keys, "values"), base);
  EXPECT_NE(ChecksumOf("directory", std::vector<uint64_t>{1, 2, 4}, "values"), base);
  EXPECT_NE(ChecksumOf("directory", keys, "valuez"), base);
  EXPECT_EQ(ChecksumOf("directory", keys, "values"), base);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span<const char>("directory", 9)),
                                               std::as_bytes(std::span(keys)),
                                               std::as_bytes(std::span<const char>("values", 6))};
  EXPECT_EQ(ChecksumOf(pieces), base);
  // XXH3 of nothing, from the specification's reference implementation.
  EXPECT_EQ(ChecksumOf("", {}, ""), 0x2d06800538d394c2u);
}

}  // namespace
}  // namespace muster::wire
