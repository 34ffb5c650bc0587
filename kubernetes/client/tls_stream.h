#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "kubernetes/config/cluster_access.h"
#include "kubernetes/config/exec_plugin.h"

namespace muster::kubernetes {

/// The TLS below a WebSocket of the API server: the server's certificate is checked against the
/// cluster's authority and the server's name. Only this folder's sources include it, because it
/// names Beast. Not thread-safe; `stop` may come from any thread.
class TlsStream {
 public:
  using Stream = boost::beast::ssl_stream<boost::beast::tcp_stream>;

  TlsStream(const ClusterAccess& access, std::stop_token stop);

  /// Connects and shakes hands; blocks until `deadline` at most. Errors: those of HttpClient.
  absl::Status Open(const ClusterAccess& access, const Credentials& credentials,
                    TimePoint deadline);

  /// Require: Open succeeded.
  Stream& stream() { return *stream_; }
  boost::beast::tcp_stream& lowest() { return boost::beast::get_lowest_layer(*stream_); }

  boost::asio::io_context& io() { return io_; }
  const std::stop_token& stop() const { return stop_; }
  /// Of operations from now on.
  void set_stop(std::stop_token stop) { stop_ = std::move(stop); }
  const std::string& url() const { return url_; }
  /// Before every path of the server.
  const std::string& prefix() const { return prefix_; }
  /// The value of the header Host.
  const std::string& host_field() const { return host_field_; }

  /// The status of `error`: "`what` URL (error)".
  absl::Status Failed(const boost::system::error_code& error, std::string_view what) const;

  /// Starts an operation and waits for its end; the stream's deadline and `stop` end it, too.
  template <typename Start>
  boost::system::error_code Await(Start start) {
    boost::system::error_code result = boost::asio::error::operation_aborted;
    start([&result](const boost::system::error_code& error, auto&&...) { result = error; });
    const std::stop_callback stopping(
        stop_, [this] { boost::asio::post(io_, [this] { lowest().close(); }); });
    io_.restart();
    io_.run();
    return result;
  }

 private:
  absl::Status Connect(const ClusterAccess& access, TimePoint deadline);

  const std::string url_;
  const std::string prefix_;
  std::stop_token stop_;
  std::string host_field_;
  boost::asio::io_context io_{1};
  boost::asio::ssl::context context_{boost::asio::ssl::context::tls_client};
  std::optional<Stream> stream_;
};

}  // namespace muster::kubernetes
