#include "proto/rpc/channel.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ChannelTest, NumbersNeedNoNameService) {
  EXPECT_EQ(ChannelTarget("127.0.0.1:80"), "ipv4:127.0.0.1:80");
  EXPECT_EQ(ChannelTarget("[fd00::1]:80"), "ipv6:[fd00::1]:80");
  EXPECT_EQ(ChannelTarget("localhost:80"), "ipv4:127.0.0.1:80");
}

TEST(ChannelTest, NamesAreResolvedAtEachConnection) {
  EXPECT_EQ(ChannelTarget("gpu-1.example:80"), "dns:///gpu-1.example:80");
}

}  // namespace
}  // namespace muster
