#include "collectives/internal/streams.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <utility>

#include "base/address.h"
#include "base/status.h"
#include "net/ring_stream.h"

namespace muster::collectives::internal {
namespace {

namespace asio = boost::asio;

// Bytes that one step of a read or write moves at most.
constexpr size_t kStepBytes = 4u << 20;
// The requested size of a UNIX socket's send buffer. A TCP socket finds its own size.
constexpr int kUnixBufferBytes = 4 << 20;
// How long a read looks for bytes in shared memory before it sleeps; less if waits are long. Where
// members have more threads than there are processors, a longer look keeps others from working.
constexpr std::chrono::microseconds kSpinMax{10};

void Prepare(net::Socket* socket) {
  boost::system::error_code ignored;
  if (socket->local_endpoint(ignored).protocol().family() == AF_UNIX) {
    socket->set_option(asio::socket_base::send_buffer_size(kUnixBufferBytes), ignored);
    return;
  }
  socket->set_option(asio::ip::tcp::no_delay(true), ignored);
  DetectVanishedPeer(socket->native_handle());
  // A member that still computes reads nothing, so its window may be closed for as long as it
  // likes. The kernel would take that for a peer that has vanished.
  const int unlimited = 0;
  ::setsockopt(socket->native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unlimited,
               sizeof(unlimited));
}

net::RingStream::Spin SpinOf(const RingSharing& sharing) {
  return {.max = kSpinMax, .clock = &sharing.clock};
}

/// Its memory counts for as long as it lives.
class MadeRingStream : public net::RingStream {
 public:
  MadeRingStream(net::Socket socket, net::RingMemory memory,
                 std::unique_ptr<net::OfferedRings> offered, const RingSharing& sharing)
      : RingStream(std::move(socket), std::move(memory), Side::kMadeIt, SpinOf(sharing)),
        offered_(std::move(offered)) {}

 private:
  const std::unique_ptr<net::OfferedRings> offered_;
};

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

uint32_t WantedRingBytes(const RingSharing& sharing) {
  return sharing.budget.bytes_max() == 0 ? 0 : sharing.ring_bytes;
}

std::unique_ptr<net::ByteStream> MadeRings(net::Socket socket, net::RingMemory memory,
                                           std::unique_ptr<net::OfferedRings> offered,
                                           const RingSharing& sharing) {
  return std::make_unique<MadeRingStream>(std::move(socket), std::move(memory), std::move(offered),
                                          sharing);
}

absl::StatusOr<std::unique_ptr<net::ByteStream>> OpenedRings(net::Socket* socket, OwnedFd received,
                                                             uint32_t ring_bytes,
                                                             const RingSharing& sharing) {
  MUSTER_ASSIGN_OR_RETURN(net::RingMemory memory,
                          net::RingMemory::Open(std::move(received), ring_bytes));
  return std::make_unique<net::RingStream>(std::move(*socket), std::move(memory),
                                           net::RingStream::Side::kOpenedIt, SpinOf(sharing));
}

std::string EncodeFrame(FrameKind kind, std::string_view message) {
  std::array<std::byte, kFrameHeaderBytes> header;
  EncodeFrameHeader({.kind = kind, .payload_bytes = message.size()}, header);
  std::string frame(reinterpret_cast<const char*>(header.data()), header.size());
  return frame += message;
}

}  // namespace muster::collectives::internal
