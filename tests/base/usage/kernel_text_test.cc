#include "base/usage/kernel_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(KernelTextTest, TheFirstNumber) {
  EXPECT_EQ(FirstNumber("17 (a name) S 16"), 17u);
  EXPECT_EQ(FirstNumber("  \t 4096 kB"), 4096u);
  EXPECT_EQ(FirstNumber("max"), 0u);
  EXPECT_EQ(FirstNumber(""), 0u);
}

TEST(KernelTextTest, TheRestOfALine) {
  EXPECT_EQ(RestOfLine("1:cpu:/a\n0::/b\n", "0::"), "/b");
  EXPECT_EQ(RestOfLine("0::", "0::"), "");
  EXPECT_EQ(RestOfLine("10::/b", "0::"), std::nullopt);
  EXPECT_EQ(RestOfLine("", "0::"), std::nullopt);
}

TEST(KernelTextTest, NumbersByTheirKey) {
  constexpr std::string_view kText =
      "oom_kill_disable 7\noom_kill 3\nlow 18446744073709551615\nbad x\nVmHWM:\t  12 kB\nend 5";
  EXPECT_EQ(KeyedNumber(kText, "oom_kill"), 3u);
  EXPECT_EQ(KeyedNumber(kText, "low"), 18446744073709551615u);
  EXPECT_EQ(KeyedNumber(kText, "VmHWM"), 12u);
  EXPECT_EQ(KeyedNumber(kText, "end"), 5u);
  EXPECT_EQ(FindNumber(kText, "bad"), 0u) << "the number of the next line is another one";
  EXPECT_EQ(FindNumber(kText, "absent"), std::nullopt);
  EXPECT_EQ(KeyedNumber(kText, "absent"), 0u);
}

TEST(KernelTextTest, WhatTheKernelCanDrop) {
  EXPECT_EQ(DroppableBytes("anon 1\nfile 2\nshmem 4\ninactive_file 8\nactive_file 16\n"
                           "slab_reclaimable 32\nslab_unreclaimable 64\n"),
            56u);
}

}  // namespace
}  // namespace muster
