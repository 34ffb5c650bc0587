#include "kubernetes/model/timestamp.h"

#include <gtest/gtest.h>

namespace muster::kubernetes {
namespace {

TEST(Timestamp, ReadsWhatTheApiSends) {
  // date -u -d 2026-11-26T13:30:00Z +%s
  EXPECT_EQ(ParseTimestamp("2026-11-26T13:30:00Z"), std::chrono::seconds(1'795'699'800));
  EXPECT_EQ(ParseTimestamp("2026-11-26T13:30:00.25Z"),
            std::chrono::milliseconds(1'795'699'800'250));
  EXPECT_EQ(ParseTimestamp("2026-11-26T13:30:00.123456789Z"),
            std::chrono::microseconds(1'795'699'800'123'456));
  EXPECT_EQ(ParseTimestamp("2026-11-26T14:30:00+01:00"), std::chrono::seconds(1'795'699'800));
  EXPECT_EQ(ParseTimestamp("2026-11-26T08:00:00-05:30"), std::chrono::seconds(1'795'699'800));
  EXPECT_EQ(ParseTimestamp("1970-01-01T00:00:00Z"), std::chrono::seconds(0));
}

TEST(Timestamp, RefusesEverythingElse) {
  for (const char* text :
       {"", "2026-11-26", "2026-11-26T13:30:00", "2026-13-26T13:30:00Z", "2026-02-30T13:30:00Z",
        "2026-11-26T24:30:00Z", "2026-11-26T13:60:00Z", "2026-11-26T13:30:00Zx", "tomorrow",
        "2026-11-26T13:30:00+0100", "-026-11-26T13:30:00Z", "2026-11-26T13:30:00.25"}) {
    EXPECT_EQ(ParseTimestamp(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::kubernetes
