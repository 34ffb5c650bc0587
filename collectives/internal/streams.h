#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "collectives/frames.h"
#include "net/offered_rings.h"
#include "net/ring_budget.h"
#include "net/socket_stream.h"
#include "net/tls_stream.h"

/// The streams of connected sockets, as both ends of a connection make them.
namespace muster::collectives::internal {

/// Sets what a socket needs. A plain one, TCP or UNIX:
std::unique_ptr<net::SocketStream> PlainStream(net::Socket socket);
/// One whose handshake comes next.
std::unique_ptr<net::TlsStream> EncryptedStream(net::Socket socket, ssl_ctx_st* context,
                                                net::TlsStream::Side side);

/// The memory that a process shares with members on its machine. Belongs to the hub's thread, and
/// outlives its streams.
struct RingSharing {
  explicit RingSharing(size_t bytes_max) : budget(bytes_max) {}
  net::RingBudget budget;
  const SystemClock clock;
  /// Of one ring: it holds some chunks, and fits into a processor's cache.
  uint32_t ring_bytes = 1u << 20;
};
/// What a dialer asks for; 0: nothing.
uint32_t WantedRingBytes(const RingSharing& sharing);
/// A stream over the rings that this process has made and handed over; `socket` stays open.
std::unique_ptr<net::ByteStream> MadeRings(net::Socket socket, net::RingMemory memory,
                                           std::unique_ptr<net::OfferedRings> offered,
                                           const RingSharing& sharing);
/// A stream over the rings that a member has made and that were received from `socket`, which stays
/// open. Errors: they are not what they should be.
absl::StatusOr<std::unique_ptr<net::ByteStream>> OpenedRings(net::Socket* socket, OwnedFd received,
                                                             uint32_t ring_bytes,
                                                             const RingSharing& sharing);

/// A whole frame without a checksum, for what is said before a link exists.
std::string EncodeFrame(FrameKind kind, std::string_view message);

}  // namespace muster::collectives::internal
