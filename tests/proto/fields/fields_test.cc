#include "proto/fields/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "proto/fields/decode.h"
#include "proto/fields/encode.h"
#include "proto/fields/json.h"
#include "tests/support/status_matchers.h"

// Cases that no generated class covers: bytes that only other programs write, and refused input.
// Bytes are written out by hand, so that a mistake cannot be made in both directions.
namespace muster::fields {
namespace {

using ::muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Inner {
  float rate = 0.5f;
  uint64_t steps = 0;
  static void Fields(auto& f, auto& s) { f(1, "rate", s.rate), f(2, "steps", s.steps); }
};
struct Named {
  uint64_t steps = 0;
  static void Fields(auto& f, auto& s) { f(2, "steps", s.steps); }
};
struct Outer {
  uint32_t number = 7;
  std::string text;
  std::vector<uint64_t> numbers;
  std::vector<std::string> texts;
  std::vector<Inner> inner;
  std::map<std::string, Named> named;
  std::map<std::string, std::string> settings;
  bool flag = true;
  std::string file;
  uint32_t unsent = 9;
  static void Fields(auto& f, auto& s) {
    f(1, "number", s.number, {.most = 1'000});
    f(2, "text", s.text, {.most = 5});
    f(3, "numbers", s.numbers, {.most = 3});
    f(4, "texts", s.texts, {.most = 2, .text_most = 1});
    f(5, "inner", s.inner);
    f(6, "named", s.named);
    f(7, "settings", s.settings);
    f(8, "flag", s.flag);
    f(9, "file", s.file, {.most = 6, .raw = true});
    f(0, "unsent", s.unsent);
  }
  std::optional<std::string> Wrong() const {
    return number == 13 ? std::optional<std::string>("13 is unlucky") : std::nullopt;
  }
};

absl::Status Refusal(std::string_view bytes, Side side = Side::kPeer) {
  return Decode<Outer>(bytes, side).status();
}

TEST(FieldsTest, WhatIsAbsentIsZeroWhateverTheStructBeginsWith) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer read, Decode<Outer>(std::string_view("\x2a\0", 2)));
  EXPECT_EQ(read.number, 0u);
  EXPECT_FALSE(read.flag);
  ASSERT_EQ(read.inner.size(), 1u);
  EXPECT_EQ(read.inner[0].rate, 0.0f);
  EXPECT_EQ(read.unsent, 9u) << "it has no number";
}

TEST(FieldsTest, EmptyMessagesInListsAreWritten) {
  Outer outer{.number = 0, .flag = false};
  outer.inner.resize(2);
  outer.inner[0].rate = outer.inner[1].rate = 0;
  outer.texts = {"", ""};
  outer.settings[""] = "";
  EXPECT_EQ(Encode(outer), std::string("\x22\0\x22\0\x2a\0\x2a\0\x3a\x04\x0a\0\x12\0", 14));
}

TEST(FieldsTest, NumbersAreReadPackedAndOneByOne) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer read, Decode<Outer>("\x18\x05\x1a\x02\x06\x07"));
  EXPECT_THAT(read.numbers, ElementsAre(5, 6, 7));
  EXPECT_THAT(Refusal("\x18\x05\x1a\x02\x06\x07\x18\x08"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("numbers: 4 entries are more than the limit of 3")));
  EXPECT_THAT(Refusal("\x1a\x04\x05\x06\x07\x08"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("numbers: 4 entries")));
  EXPECT_THAT(Refusal("\x1a\x02\x05\x86"),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(FieldsTest, UnknownFieldsAreSkipped) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer read, Decode<Outer>("\xfa\x07\x03"
                                                              "abc\xf0\x07\x05\x08\x03"));
  EXPECT_EQ(read.number, 3u);
}

TEST(FieldsTest, AFieldOfAnotherTypeIsRefused) {
  EXPECT_THAT(Refusal("\x0a\x01x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another type")));
  EXPECT_THAT(Refusal("\x10\x05"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another type")));
  EXPECT_THAT(Refusal(std::string("\x19\x01\x05\0\0\0\0\0\0", 9)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another type")));
  EXPECT_THAT(Refusal("\x12\x05x"), StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(FieldsTest, LimitsAreThoseOfPeers) {
  EXPECT_THAT(Refusal("\x12\x06"
                      "abcdef"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("text: 6 bytes are more than the limit of 5")));
  EXPECT_THAT(Refusal("\x22\x02"
                      "ab"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("texts: 2 bytes")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer own, Decode<Outer>("\x12\x06"
                                                             "abcdef",
                                                             Side::kOwnDisk));
  EXPECT_EQ(own.text, "abcdef");
  // An unknown number has no meaning on disk, either.
  for (const Side side : {Side::kPeer, Side::kOwnDisk}) {
    EXPECT_THAT(Refusal("\x08\xe9\x07", side),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("number: 1001 is not a known value (0 to 1000)")));
    EXPECT_THAT(Refusal("\x08\x81\x80\x80\x80\x10", side),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4294967297 is not")));
    EXPECT_THAT(Refusal("\x08\x0d", side),
                StatusIs(absl::StatusCode::kInvalidArgument, "13 is unlucky"));
  }
}

TEST(FieldsTest, WhatIsNotUtf8IsRefusedOfPeersAndNeverSent) {
  Outer outer;
  outer.text = "a\xff";
  EXPECT_THAT(Refusal(Encode(outer, Side::kOwnDisk)),
              StatusIs(absl::StatusCode::kInvalidArgument, "text: is not UTF-8"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer sent, Decode<Outer>(Encode(outer)));
  EXPECT_EQ(sent.text, "a?");
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer kept,
                              Decode<Outer>(Encode(outer, Side::kOwnDisk), Side::kOwnDisk));
  EXPECT_EQ(kept.text, "a\xff");
}

TEST(FieldsTest, NamesOfFilesGoAsTheyAre) {
  Outer outer;
  outer.file = "/a\xff";
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer read, Decode<Outer>(Encode(outer)));
  EXPECT_EQ(read.file, outer.file);
  outer.file = std::string(7, '\xff');
  EXPECT_THAT(Refusal(Encode(outer)), StatusIs(absl::StatusCode::kInvalidArgument,
                                               "file: 7 bytes are more than the limit of 6"));
}

TEST(FieldsTest, EntriesOfAMapHaveNamesOfTheirOwn) {
  Outer outer;
  outer.named["a"] = {.steps = 2};
  outer.settings["k"] = "v";
  const std::string bytes = Encode(outer);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer read, Decode<Outer>(bytes));
  EXPECT_EQ(read.settings, outer.settings);
  EXPECT_EQ(Encode(read), bytes);
  outer.named["a"].steps = 3;
  outer.settings["k"] = "w";
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer last, Decode<Outer>(bytes + Encode(outer)));
  EXPECT_EQ(last.named.at("a").steps, 3u) << "the last counts";
  EXPECT_EQ(last.settings, outer.settings);
}

TEST(FieldsTest, BytesThatEndTooEarlyAreRefused) {
  EXPECT_THAT(Refusal("\x08"), StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(Refusal("\x2a\x05\x10"), StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(Refusal("\x0b"), StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_))
      << "a group";
  MUSTER_ASSERT_OK_AND_ASSIGN(const Outer none, Decode<Outer>(""));
  EXPECT_THAT(none.inner, IsEmpty());
}

TEST(JsonTextTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(JsonText({{"file", "caf\xe9.txt"}}), "{\"file\":\"caf\xef\xbf\xbd.txt\"}");
  EXPECT_EQ(JsonText({{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

}  // namespace
}  // namespace muster::fields
