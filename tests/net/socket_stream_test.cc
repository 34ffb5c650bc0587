#include "net/socket_stream.h"

#include "tests/net/stream_fixture.h"

namespace muster::net {
namespace {

/// Two ends of a UNIX socket.
struct SocketPair {
  static std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>> Make(
      boost::asio::io_context* io) {
    auto [here, there] = stream_test::ConnectedSockets(io);
    return {std::make_unique<SocketStream>(std::move(here), 1u << 20),
            std::make_unique<SocketStream>(std::move(there), 1u << 20)};
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Socket, ByteStreamTest, SocketPair);

}  // namespace
}  // namespace muster::net
