#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectives/frames.h"
#include "net/socket_stream.h"
#include "net/tls_stream.h"

/// The streams of connected sockets, as both ends of a connection make them.
namespace muster::collectives::internal {

/// Sets what a socket needs. A plain one, TCP or UNIX:
std::unique_ptr<net::SocketStream> PlainStream(net::Socket socket);
/// One whose handshake comes next.
std::unique_ptr<net::TlsStream> EncryptedStream(net::Socket socket, ssl_ctx_st* context,
                                                net::TlsStream::Side side);

/// A whole frame without a checksum, for what is said before a link exists.
std::string EncodeFrame(FrameKind kind, std::string_view message);

}  // namespace muster::collectives::internal
