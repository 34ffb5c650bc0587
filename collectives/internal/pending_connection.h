#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "collectives/frames.h"
#include "collectives/internal/link.h"
#include "collectives/internal/streams.h"
#include "net/byte_stream.h"
#include "net/socket_stream.h"
#include "net/tls_stream.h"

namespace muster::collectives::internal {

/// A connection that another process has made, until it is accepted or refused. Belongs to the
/// listener's thread; handlers keep it alive.
class PendingConnection : public std::enable_shared_from_this<PendingConnection> {
 public:
  /// Its hello has come; `hello` is null if it ended before that.
  using Greeted =
      std::function<void(const std::shared_ptr<PendingConnection>&, const Hello* hello)>;

  /// `context`: null for plain text. `sharing` outlives the connection, and the link that it
  /// becomes.
  PendingConnection(net::Socket socket, std::shared_ptr<ssl_ctx_st> context, RingSharing* sharing,
                    Greeted greeted);
  /// Begins to read; the connection ends by itself if its hello takes longer than `timeout`.
  void Start(std::chrono::milliseconds timeout);
  /// Tells the peer why, and ends the connection.
  void Refuse(std::string_view why, bool again);
  /// Sends the reply: the connection is a link now, over shared memory if the peer wants it and
  /// there is some. Call it once, instead of Refuse.
  std::shared_ptr<Link> Accept(Link::Handler* handler);
  /// Ends it at once; nothing is called from then on.
  void Close();
  const Hello& hello() const { return hello_; }

 private:
  void ReadHello();
  void ReadMessage();
  void OnHello();
  /// Null: frames go through the socket, which may have been closed.
  std::unique_ptr<net::ByteStream> ShareMemory();
  void Fail();
  template <typename Then>
  net::ByteStream::Handler Guarded(Then then);

  RingSharing* const sharing_;
  Greeted greeted_;  // null: it has been called, or closed
  boost::asio::steady_timer deadline_;
  std::unique_ptr<net::ByteStream> stream_;
  net::TlsStream* tls_ = nullptr;  // stream_, if it is one
  net::SocketStream* plain_ = nullptr;
  std::array<std::byte, kFrameHeaderBytes> header_bytes_;
  std::string message_;
  std::string reply_;
  Hello hello_;
};

}  // namespace muster::collectives::internal
