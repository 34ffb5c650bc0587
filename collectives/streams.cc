#include "collectives/internal/streams.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "base/address.h"

namespace muster::collectives::internal {
namespace {

namespace asio = boost::asio;

// Bytes that one step of a read or write moves at most.
constexpr size_t kStepBytes = 4u << 20;
// The requested size of a UNIX socket's send buffer. A TCP socket finds its own size.
constexpr int kUnixBufferBytes = 4 << 20;

void Prepare(net::Socket* socket) {
  boost::system::error_code ignored;
  if (socket->local_endpoint(ignored).protocol().family() == AF_UNIX) {
    socket->set_option(asio::socket_base::send_buffer_size(kUnixBufferBytes), ignored);
    return;
  }
  socket->set_option(asio::ip::tcp::no_delay(true), ignored);
  DetectVanishedPeer(socket->native_handle());
}

}  // namespace

std::unique_ptr<net::SocketStream> PlainStream(net::Socket socket) {
  Prepare(&socket);
  return std::make_unique<net::SocketStream>(std::move(socket), kStepBytes);
}

std::unique_ptr<net::TlsStream> EncryptedStream(net::Socket socket, ssl_ctx_st* context,
                                                net::TlsStream::Side side) {
  Prepare(&socket);
  return std::make_unique<net::TlsStream>(std::move(socket), context, side, kStepBytes);
}

std::string EncodeFrame(FrameKind kind, std::string_view message) {
  std::array<std::byte, kFrameHeaderBytes> header;
  EncodeFrameHeader({.kind = kind, .payload_bytes = message.size()}, header);
  std::string frame(reinterpret_cast<const char*>(header.data()), header.size());
  return frame += message;
}

}  // namespace muster::collectives::internal
