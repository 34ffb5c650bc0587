#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "security/tls_context.h"

namespace muster::scaler::rest {

/// The byte stream of one peer, with or without TLS. Asio and Beast can use it, with functions as
/// handlers. Belongs to the server's thread.
class PeerStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  /// If `context` is null, the stream is plain text.
  PeerStream(Socket socket, TlsContext::Context context)
      : socket_(std::move(socket)), context_(std::move(context)) {
    if (context_ != nullptr) tls_.emplace(socket_, *context_);
  }
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  Socket& socket() { return socket_; }
  bool open() const { return socket_.is_open(); }
  bool tls() const { return tls_.has_value(); }
  /// Requires: tls().
  SSL* ssl() { return tls_->native_handle(); }

  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }
  /// Does the handshake. Requires: tls(). Calls `handler(error)`.
  template <typename Handler>
  void AsyncHandshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  /// Says that we send nothing more. Calls `handler(error)`. Under TLS, it waits until the peer has
  /// said so, too.
  template <typename Handler>
  void AsyncEnd(Handler&& handler) {
    if (tls_) return tls_->async_shutdown(std::forward<Handler>(handler));
    boost::system::error_code error;
    socket_.shutdown(boost::asio::socket_base::shutdown_send, error);
    handler(error);
  }

 private:
  Socket socket_;
  TlsContext::Context context_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace muster::scaler::rest
