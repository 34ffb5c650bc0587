#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogTest, WritesNameLevelAndTextAndLeavesOutWhatIsBelowTheLowestLevel) {
  ::testing::internal::CaptureStderr();
  InitLogging("ps-7", LogLevel::kInfo);
  Log(LogLevel::kDebug, "not this");
  Log(LogLevel::kWarning, "partition {} is {}", 3, "late");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("warning ps-7: partition 3 is late\n"));
  EXPECT_THAT(lines, Not(HasSubstr("not this")));
}

}  // namespace
}  // namespace muster
