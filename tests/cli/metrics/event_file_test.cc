#include "cli/metrics/event_file.h"

#include <gmock/gmock.h>

#include "tests/cli/metrics/event_reader.h"

namespace muster::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Point kAuc{.tag = "auc", .step = 3, .wall_seconds = 1.5e9 + 0.25, .value = 0.8125};
const Point kZero{.tag = "loss", .step = 70'000, .wall_seconds = 1.5e9, .value = 0};

TEST(EventFileTest, AnotherReaderReadsIt) {
  const auto events =
      ReadEvents(EncodeHead("muster demo 1f", 7.5) + EncodePoint(kAuc) + EncodePoint(kZero));
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 3u);
  const ReadEvent& head = events->at(0);
  EXPECT_EQ(head.file_version, "brain.Event:2");
  EXPECT_EQ(head.writer, "muster demo 1f");
  EXPECT_EQ(head.wall_seconds, 7.5);
  EXPECT_FALSE(head.value.has_value());
  const ReadEvent& auc = events->at(1);
  EXPECT_EQ(auc.tag, "auc");
  EXPECT_EQ(auc.step, 3u);
  EXPECT_EQ(auc.wall_seconds, kAuc.wall_seconds);
  EXPECT_EQ(auc.value, 0.8125f);
  EXPECT_EQ(events->at(2).step, 70'000u);
  EXPECT_EQ(events->at(2).value, 0.0f) << "a zero is written, too";
}

TEST(EventFileTest, WhatWasWrittenIsReadBack) {
  const std::string bytes = EncodeHead("me", 1) + EncodePoint(kAuc) + EncodePoint(kZero);
  const EventFile file = DecodeEventFile(bytes);
  EXPECT_EQ(file.writer, "me");
  EXPECT_THAT(file.points, ElementsAre(kAuc, kZero));
  EXPECT_EQ(file.whole_bytes, bytes.size());
  EXPECT_THAT(DecodeEventFile("").points, IsEmpty());
}

TEST(EventFileTest, ATornOrDamagedRecordEndsIt) {
  const std::string before = EncodeHead("me", 1) + EncodePoint(kAuc);
  const std::string last = EncodePoint(kZero);
  for (size_t size = 0; size < last.size(); ++size) {
    const EventFile file = DecodeEventFile(before + last.substr(0, size));
    EXPECT_EQ(file.whole_bytes, before.size()) << size;
    EXPECT_THAT(file.points, ElementsAre(kAuc)) << size;
    std::string damaged = before + last + last;
    damaged[before.size() + size] ^= 0x10;
    EXPECT_EQ(DecodeEventFile(damaged).whole_bytes, before.size()) << size;
  }
}

}  // namespace
}  // namespace muster::metrics
