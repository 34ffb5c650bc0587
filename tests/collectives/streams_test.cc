#include "collectives/internal/streams.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

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

TEST(StreamsTest, AMemberMayLeaveAWindowClosedForAsLongAsItLikes) {
  boost::asio::io_context io;
  net::Socket socket(boost::asio::ip::tcp::socket(io, boost::asio::ip::tcp::v4()));
  const int fd = socket.native_handle();
  net::Prepare(&socket, kSocketSettings);
  int alive = 0, timeout_ms = -1;
  socklen_t size = sizeof(alive);
  ::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &alive, &size);
  ::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &size);
  EXPECT_NE(alive, 0) << "a peer that vanishes while the connection is idle is noticed";
  EXPECT_EQ(timeout_ms, 0) << "the kernel counts the time of a closed window, too";
}

}  // namespace
}  // namespace muster::collectives::internal
