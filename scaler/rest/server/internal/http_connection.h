#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "scaler/rest/http_message.h"
#include "scaler/rest/rate_limit.h"
#include "scaler/rest/server/http_server.h"
#include "scaler/rest/server/internal/peer_stream.h"

namespace muster::scaler::rest {

class HttpConnection;

/// What a connection needs of its server. All calls are on the server's thread.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  /// A complete request came. Answer it with one Respond() or Stream().
  virtual void OnRequest(std::shared_ptr<HttpConnection> connection, Request request) = 0;
  /// The connection answers a request itself.
  virtual void OnAnswer(int status) = 0;
  virtual void OnClosed(HttpConnection* connection) = 0;
  /// Returns a number that grows with each call.
  virtual uint64_t NextTurn() = 0;
  /// Returns the time for the header Date.
  virtual std::string DateNow() = 0;
};

/// The connection to one peer. It reads a request, has it answered, writes the answer, and so on.
/// Or it writes a stream. Every wait for the peer has a deadline. Belongs to the server's thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  /// `limits` and `host` outlive the connection. `context` is for TLS; if null, the connection is
  /// plain text.
  HttpConnection(Socket socket, TlsContext::Context context, RateLimiter limiter,
                 const HttpLimits* limits, ConnectionHost* host);

  void Start();
  /// Call it instead of Start(): it answers without reading a request, and closes.
  void TurnAway(const Response& response);
  /// Answers the request that OnRequest() brought. Does nothing if the connection is closed.
  void Respond(const Response& response);
  /// Begins a stream with the head and `text`. `on_written` is called after each write. Continue
  /// with Write().
  void Stream(const Response& response, std::string text, std::function<void()> on_written);
  void Write(std::string text);
  /// Closes at once. Idempotent.
  void Close();

  bool open() const { return stream_.open(); }
  /// True while the peer has to send: no request has come, or a part of it is missing. The second
  /// function returns the number from NextTurn() at which that began.
  bool waiting() const { return waiting_; }
  uint64_t waiting_since() const { return waiting_since_; }
  RateLimiter* limiter() { return &limiter_; }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  /// Prepares the connection (the TLS handshake) and then calls `then`.
  void Begin(std::function<void()> then);
  void OnHandshakeError(const boost::system::error_code& error);
  void AwaitRequest();
  void ReadHead();
  void OnHead();
  void ReadBody();
  void OnBody();
  /// A request could not be read. Says why, if the peer may still be there, and closes.
  void OnReadError(const boost::system::error_code& error);
  /// Answers a request that was not read, and closes.
  void Refuse(const Response& response);
  void WriteResponse(const Response& response, bool keep);
  /// Reads and drops a little of what the peer still sends, for a short time, before the socket is
  /// closed. Otherwise a reset could destroy the answer before the peer has read it.
  void Linger();
  void AwaitEndOfStream();

  /// Cancels the operation in progress after `time`.
  void SetDeadline(std::chrono::milliseconds time);
  void AwaitDeadline(std::chrono::milliseconds time, uint64_t number);
  void ClearDeadline();

  PeerStream stream_;
  boost::asio::steady_timer timer_;
  uint64_t deadline_number_ = 0;
  bool timed_out_ = false;
  RateLimiter limiter_;
  const HttpLimits* limits_;
  ConnectionHost* host_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool waiting_ = false;
  uint64_t waiting_since_ = 0;
  bool head_request_ = false;
  bool keep_alive_ = false;
  bool closed_ = false;
  size_t lingered_bytes_ = 0;
  std::string outgoing_;
  std::function<void()> on_written_;
};

}  // namespace muster::scaler::rest
