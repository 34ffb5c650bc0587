#include "cli/verify/slowness.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace muster::verify {
namespace {

using std::chrono::microseconds;

TEST(SlownessTest, WithoutAFileItIsAlwaysTheSame) {
  EXPECT_EQ(WaitOf({}), microseconds(0));
  EXPECT_EQ(WaitOf({.each = microseconds(30)}), microseconds(30));
}

TEST(SlownessTest, AFileSaysWhetherAndHowMuch) {
  const testing::TempDir folder;
  const Slowness slowness{.each = microseconds(30), .while_file = folder.File("slow")};
  const auto wait_with = [&](const char* text) {
    std::ofstream(slowness.while_file) << text;
    return WaitOf(slowness);
  };
  EXPECT_EQ(WaitOf(slowness), microseconds(0)) << "there is none";
  EXPECT_EQ(wait_with(""), microseconds(30));
  EXPECT_EQ(wait_with("7\n"), microseconds(7));
  EXPECT_EQ(wait_with("0"), microseconds(0));
  EXPECT_EQ(wait_with("1000000000"), microseconds(Slowness::kMaxUs));
  for (const char* wrong : {"1000000001", "-1", "7s", "fast"}) {
    EXPECT_EQ(wait_with(wrong), microseconds(30)) << wrong;
  }
  std::filesystem::remove(slowness.while_file);
  EXPECT_EQ(WaitOf(slowness), microseconds(0));
}

}  // namespace
}  // namespace muster::verify
