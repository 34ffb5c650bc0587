#include "collectives/internal/streams.h"

#include <gtest/gtest.h>

namespace muster::collectives::internal {
namespace {

TEST(StreamsTest, AFrameIsAHeaderAndItsMessage) {
  const std::string frame = EncodeFrame(FrameKind::kHello, "text");
  ASSERT_EQ(frame.size(), kFrameHeaderBytes + 4);
  const FrameHeader header =
      DecodeFrameHeader(
          ConstHeaderBytes(reinterpret_cast<const std::byte*>(frame.data()), kFrameHeaderBytes))
          .value();
  EXPECT_EQ(header, (FrameHeader{.kind = FrameKind::kHello, .payload_bytes = 4}));
  EXPECT_EQ(frame.substr(kFrameHeaderBytes), "text");
}

}  // namespace
}  // namespace muster::collectives::internal
