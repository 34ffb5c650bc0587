#include "kubernetes/client/port_forward.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <optional>
#include <utility>

#include "base/status.h"
#include "base/version.h"
#include "kubernetes/client/tls_stream.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/forward_frames.h"
#include "kubernetes/model/resource.h"

namespace muster::kubernetes {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

constexpr size_t kForwardPieceBytes = 32 << 10;
constexpr size_t kMessageBytesMax = 16 << 20;

absl::StatusOr<std::string> TargetOf(const PodPort& target) {
  MUSTER_ASSIGN_OR_RETURN(const std::string path, PathOf({.resource = Resource::kPods,
                                                          .ns = target.ns,
                                                          .name = target.pod,
                                                          .subresource = "portforward"}));
  return fmt::format("{}?ports={}", path, target.port);
}

/// One forwarded connection: in each direction at most one piece is under way, so a slow receiver
/// slows its sender down.
class Forwarding {
 public:
  Forwarding(TlsStream* tls, OwnedFd local) : tls_(tls), local_(tls->io()) {
    error_code error;
    local_.assign(asio::ip::tcp::v4(), local.get(), error);
    if (!error) local.Release();
  }

  absl::Status Open(const std::string& target, const std::string& token,
                    const PortForwardOptions& options) {
    // The WebSocket has time limits of its own.
    tls_->lowest().expires_never();
    socket_.emplace(std::move(tls_->stream()));
    socket_->set_option(
        websocket::stream_base::timeout{.handshake_timeout = options.connect_deadline,
                                        .idle_timeout = options.silence_max,
                                        .keep_alive_pings = true});
    socket_->set_option(
        websocket::stream_base::decorator([&token](websocket::request_type& request) {
          request.set(http::field::user_agent, fmt::format("muster/{}", kVersion));
          request.set(http::field::sec_websocket_protocol, kForwardProtocol);
          if (!token.empty()) request.set(http::field::authorization, "Bearer " + token);
        }));
    socket_->binary(true);
    // Kubernetes takes each further frame of a message for a message, and so drops it.
    socket_->auto_fragment(false);
    socket_->read_message_max(kMessageBytesMax);
    websocket::response_type response;
    const error_code error = Await([&](auto done) {
      socket_->async_handshake(response, tls_->host_field(), tls_->prefix() + target,
                               std::move(done));
    });
    if (error == websocket::error::upgrade_declined) {
      const auto wait = response[http::field::retry_after];
      return ToStatus(ReadApiError(static_cast<int>(response.result_int()), response.body(),
                                   std::string_view(wait.data(), wait.size())));
    }
    return error ? tls_->Failed(error, "no port-forward by") : absl::OkStatus();
  }

  absl::Status Run() {
    ReadFromPod();
    ReadFromLocal();
    RunUntil(&is_closed_);
    return tls_->stop().stop_requested() ? absl::CancelledError("stopped") : result_;
  }

 private:
  using Socket = websocket::stream<TlsStream::Stream>;

  template <typename Start>
  error_code Await(Start start) {
    error_code result = asio::error::operation_aborted;
    bool is_over = false;
    start([&](const error_code& error, auto&&...) {
      result = error;
      is_over = true;
    });
    RunUntil(&is_over);
    return result;
  }

  /// Not until there is nothing to do: the timers of the WebSocket go on.
  void RunUntil(const bool* is_over) {
    const std::stop_callback stopping(
        tls_->stop(), [this] { asio::post(tls_->io(), [this] { CloseAtOnce(); }); });
    tls_->io().restart();
    while (!*is_over && tls_->io().run_one() > 0) {
    }
    // What was cancelled ends now.
    tls_->io().poll();
  }

  void ReadFromPod() {
    socket_->async_read(from_pod_, [this](const error_code& error, size_t) {
      if (error) return EndOfPod(error);
      const auto bytes = from_pod_.cdata();
      const absl::StatusOr<ForwardFrame> frame =
          frames_.Read({static_cast<const char*>(bytes.data()), bytes.size()});
      if (!frame.ok()) return Leave(frame.status());
      if (frame->kind == ForwardFrame::Kind::kError) {
        return Leave(ConnectionError(frame->bytes));
      }
      if (frame->kind == ForwardFrame::Kind::kNothing) return NextFromPod();
      asio::async_write(local_, asio::buffer(frame->bytes.data(), frame->bytes.size()),
                        [this](const error_code& failed, size_t) {
                          if (failed) return Leave(absl::OkStatus());
                          NextFromPod();
                        });
    });
  }

  void NextFromPod() {
    from_pod_.clear();
    ReadFromPod();
  }

  void ReadFromLocal() {
    local_.async_read_some(asio::buffer(piece_), [this](const error_code& error, size_t size) {
      if (error) return Leave(absl::OkStatus());
      to_pod_ = DataFrame({piece_.data(), size});
      socket_->async_write(asio::buffer(to_pod_), [this](const error_code& failed, size_t) {
        // The reading side learns why.
        if (!failed) ReadFromLocal();
      });
    });
  }

  /// The pod's side has ended, or the connection to it broke.
  void EndOfPod(const error_code& error) {
    const bool is_end = error == websocket::error::closed || error == asio::error::eof ||
                        error == asio::error::operation_aborted;
    if (!is_end && !has_left_) result_ = tls_->Failed(error, "the port-forward broke from");
    CloseAtOnce();
  }

  /// Says goodbye, and waits for the server's answer, within the limits of the WebSocket.
  void Leave(const absl::Status& why) {
    if (std::exchange(has_left_, true)) return;
    if (!why.ok()) result_ = why;
    error_code ignored;
    local_.close(ignored);
    socket_->async_close(websocket::close_code::normal,
                         [this](const error_code&) { CloseAtOnce(); });
  }

  void CloseAtOnce() {
    has_left_ = true;
    is_closed_ = true;
    error_code ignored;
    local_.close(ignored);
    beast::get_lowest_layer(*socket_).close();
  }

  TlsStream* const tls_;
  asio::ip::tcp::socket local_;
  std::optional<Socket> socket_;
  ForwardFrames frames_;
  beast::flat_buffer from_pod_;
  std::array<char, kForwardPieceBytes> piece_{};
  std::string to_pod_;
  bool has_left_ = false;
  bool is_closed_ = false;
  absl::Status result_;
};

}  // namespace

absl::Status ForwardPort(CredentialSource* credentials, const Clock* clock, const PodPort& target,
                         OwnedFd local, const PortForwardOptions& options, std::stop_token stop) {
  TlsStream tls(credentials->access(), std::move(stop));
  const absl::StatusOr<std::string> path = TargetOf(target);
  const absl::StatusOr<Credentials> present =
      path.ok() ? credentials->Get() : absl::StatusOr<Credentials>(path.status());
  const absl::Status ready = present.ok() ? tls.Open(credentials->access(), *present,
                                                     clock->Now() + options.connect_deadline)
                                          : present.status();
  MUSTER_RETURN_IF_ERROR(ready);
  Forwarding forwarding(&tls, std::move(local));
  const absl::Status opened = forwarding.Open(*path, present->token, options);
  if (KindOf(opened) == ApiErrorKind::kUnauthorized) credentials->Refused(*present);
  MUSTER_RETURN_IF_ERROR(opened);
  return forwarding.Run();
}

}  // namespace muster::kubernetes
