#include "kubernetes/client/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "base/status.h"
#include "base/version.h"
#include "kubernetes/client/tls_stream.h"

namespace muster::kubernetes {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr uint64_t kErrorBodyBytesMax = 1 << 20;
constexpr size_t kPieceBytes = 64 << 10;

}  // namespace

class Connection::Impl {
 public:
  Impl(const ClusterAccess& access, std::stop_token stop) : tls_(access, std::move(stop)) {}

  absl::Status Open(const ClusterAccess& access, const Credentials& credentials,
                    TimePoint deadline) {
    return tls_.Open(access, credentials, deadline);
  }

  absl::StatusOr<HttpAnswer> Exchange(const HttpRequest& request, TimePoint deadline,
                                      uint64_t bytes_max, std::stop_token stop) {
    keep_ = false;
    tls_.set_stop(std::move(stop));
    Lowest().expires_at(deadline);
    MUSTER_RETURN_IF_ERROR(Send(request));
    http::response_parser<http::string_body> parser;
    parser.body_limit(bytes_max);
    const error_code error =
        tls_.Await([&](auto done) { http::async_read(Tls(), buffer_, parser, std::move(done)); });
    if (error == http::error::body_limit || error == http::error::buffer_overflow) {
      return absl::ResourceExhaustedError(
          fmt::format("the answer of {} has more than {} bytes", tls_.url(), bytes_max));
    }
    if (error) return Failed(error, "no whole answer from");
    keep_ = parser.keep_alive();
    HttpAnswer answer = HeadOf(parser.get());
    answer.body = std::move(parser.get().body());
    return answer;
  }

  absl::StatusOr<HttpAnswer> Stream(const HttpRequest& request, TimePoint header_deadline,
                                    const StreamLimits& limits,
                                    const std::function<absl::Status(std::string_view)>& on_bytes) {
    keep_ = false;
    Lowest().expires_at(header_deadline);
    MUSTER_RETURN_IF_ERROR(Send(request));
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    if (const error_code error = tls_.Await(
            [&](auto done) { http::async_read_header(Tls(), buffer_, parser, std::move(done)); })) {
      return Failed(error, "no answer from");
    }
    HttpAnswer answer = HeadOf(parser.get());
    std::array<char, kPieceBytes> piece;
    while (!parser.is_done()) {
      const TimePoint now = clock_.Now();
      if (now >= limits.end) return answer;
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      Lowest().expires_at(std::min(now + limits.silence, limits.end));
      // async_read would wait until the whole piece is full, and so hold events back.
      error_code error = tls_.Await(
          [&](auto done) { http::async_read_some(Tls(), buffer_, parser, std::move(done)); });
      if (error == http::error::need_buffer) error = {};
      const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
      if (answer.code != 200) {
        answer.body += bytes;
        if (answer.body.size() > kErrorBodyBytesMax) return answer;
      } else if (!bytes.empty()) {
        MUSTER_RETURN_IF_ERROR(on_bytes(bytes));
      }
      if (error == beast::error::timeout && clock_.Now() >= limits.end) return answer;
      if (error) return Failed(error, "the stream broke from");
    }
    return answer;
  }

  bool IsReusable() {
    if (!keep_ || buffer_.size() > 0) return false;
    // Between two requests the server sends nothing, except that it ends the connection.
    pollfd one{Lowest().socket().native_handle(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 0;
  }

 private:
  absl::Status Send(const HttpRequest& request) {
    http::request<http::string_body> message(http::string_to_verb(request.method),
                                             tls_.prefix() + request.target, 11);
    message.set(http::field::host, tls_.host_field());
    message.set(http::field::user_agent, fmt::format("muster/{}", kVersion));
    message.set(http::field::accept, "application/json");
    if (!request.token.empty()) {
      message.set(http::field::authorization, "Bearer " + request.token);
    }
    if (!request.body.empty()) {
      message.set(http::field::content_type, request.content_type);
      message.body() = request.body;
    }
    message.prepare_payload();
    const error_code error =
        tls_.Await([&](auto done) { http::async_write(Tls(), message, std::move(done)); });
    if (error) return Failed(error, "the request was not taken by");
    return absl::OkStatus();
  }

  template <typename Message>
  static HttpAnswer HeadOf(const Message& message) {
    const auto retry_after = message[http::field::retry_after];
    return {.code = static_cast<int>(message.result_int()),
            .retry_after = std::string(retry_after.data(), retry_after.size()),
            .body = ""};
  }

  beast::tcp_stream& Lowest() { return tls_.lowest(); }
  TlsStream::Stream& Tls() { return tls_.stream(); }
  absl::Status Failed(const error_code& error, std::string_view what) const {
    return tls_.Failed(error, what);
  }

  const SystemClock clock_;
  TlsStream tls_;
  beast::flat_buffer buffer_{kPieceBytes};
  bool keep_ = false;
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ClusterAccess& access,
                                                             const Credentials& credentials,
                                                             TimePoint deadline,
                                                             std::stop_token stop) {
  auto impl = std::make_unique<Impl>(access, std::move(stop));
  MUSTER_RETURN_IF_ERROR(impl->Open(access, credentials, deadline));
  return std::unique_ptr<Connection>(new Connection(std::move(impl)));
}

absl::StatusOr<HttpAnswer> Connection::Exchange(const HttpRequest& request, TimePoint deadline,
                                                uint64_t bytes_max, std::stop_token stop) {
  return impl_->Exchange(request, deadline, bytes_max, std::move(stop));
}

absl::StatusOr<HttpAnswer> Connection::Stream(
    const HttpRequest& request, TimePoint header_deadline, const StreamLimits& limits,
    const std::function<absl::Status(std::string_view)>& on_bytes) {
  return impl_->Stream(request, header_deadline, limits, on_bytes);
}

bool Connection::IsReusable() const {
  return impl_->IsReusable();
}

}  // namespace muster::kubernetes
