#include "cli/show/moment.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(MomentTest, SinceIsADurationAgoOrATime) {
  EXPECT_EQ(*ParseSince("5m", hours(5)), hours(5) - minutes(5));
  EXPECT_EQ(*ParseSince("1970-01-02T03:04:05Z", hours(5)), hours(27) + minutes(4) + seconds(5));
  for (const char* text : {"", "yesterday", "-5m", "1970-01-02", "1970-13-02T03:04:05Z"}) {
    EXPECT_EQ(ParseSince(text, hours(5)).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace muster
