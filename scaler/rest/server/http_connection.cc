#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>
#include <utility>

#include "scaler/rest/problem.h"
#include "scaler/rest/server/internal/http_connection.h"

namespace muster::scaler::rest {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = 4096;
constexpr size_t kLingerBytesMax = 256 << 10;
constexpr std::chrono::milliseconds kLingerTimeMax{1000};
constexpr std::chrono::milliseconds kCancelAgain{100};

Response Unreadable(int status, std::string code, std::string detail) {
  return ToResponse(
      {.status = status, .code = std::move(code), .detail = std::move(detail), .errors = {}});
}

/// The head of an answer. `bytes` is the size of its body. If absent, the body ends with the
/// connection.
http::response<http::empty_body> Head(const Response& response, std::optional<size_t> bytes,
                                      bool keep, const std::string& date) {
  http::response<http::empty_body> head;
  head.result(static_cast<unsigned>(response.status));
  head.reason(std::string(ReasonPhrase(response.status)));
  head.set(http::field::date, date);
  head.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) head.set(name, value);
  for (const auto& [name, value] : SecurityHeaders()) {
    head.set(boost::core::string_view(name), boost::core::string_view(value));
  }
  if (bytes) head.content_length(*bytes);
  head.keep_alive(keep);
  return head;
}

std::string HeadText(const http::response<http::empty_body>& head) {
  std::ostringstream text;
  text << head.base();
  return std::move(text).str();
}

Request ToRequest(http::request<http::string_body>&& message) {
  Request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    request.headers.emplace_back(std::move(name), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

}  // namespace

HttpConnection::HttpConnection(Socket socket, TlsContext::Context context, RateLimiter limiter,
                               const HttpLimits* limits, ConnectionHost* host)
    : stream_(std::move(socket), std::move(context)),
      timer_(stream_.get_executor()),
      limiter_(limiter),
      limits_(limits),
      host_(host),
      buffer_(limits->header_bytes_max + limits->body_bytes_max + kReadBytes) {
  if (limits_->send_buffer_bytes > 0) {
    error_code ignored;
    stream_.socket().set_option(asio::socket_base::send_buffer_size(limits_->send_buffer_bytes),
                                ignored);
  }
}

void HttpConnection::Close() {
  if (std::exchange(closed_, true)) return;
  error_code ignored;
  ClearDeadline();
  stream_.socket().close(ignored);
  on_written_ = nullptr;
  host_->OnClosed(this);
}

void HttpConnection::SetDeadline(std::chrono::milliseconds time) {
  timed_out_ = false;
  AwaitDeadline(time, ++deadline_number_);
}

void HttpConnection::AwaitDeadline(std::chrono::milliseconds time, uint64_t number) {
  timer_.expires_after(time);
  // An older wait may have ended already, with its handler still in the queue. The number tells
  // them apart.
  timer_.async_wait([self = shared_from_this(), number](const error_code&) {
    if (number != self->deadline_number_ || self->closed_) return;
    self->timed_out_ = true;
    error_code ignored;
    self->stream_.socket().cancel(ignored);
    // If a step had ended already, with its handler still in the queue, the connection may go on
    // with another step. So the deadline is kept.
    self->AwaitDeadline(kCancelAgain, number);
  });
}

void HttpConnection::ClearDeadline() {
  ++deadline_number_;
  timer_.cancel();
}

void HttpConnection::Start() {
  Begin([this] { AwaitRequest(); });
}

void HttpConnection::TurnAway(const Response& response) {
  Begin([this, response] { Refuse(response); });
}

void HttpConnection::Begin(std::function<void()> then) {
  if (!stream_.tls()) return then();
  waiting_ = true;
  waiting_since_ = host_->NextTurn();
  SetDeadline(limits_->header_time_max);
  stream_.AsyncHandshake(
      [self = shared_from_this(), then = std::move(then)](const error_code& error) {
        if (self->closed_) return;
        self->ClearDeadline();
        self->waiting_ = false;
        if (error) return self->OnHandshakeError(error);
        then();
      });
}

void HttpConnection::OnHandshakeError(const error_code& error) {
  if (!IsPlainHttp(error)) return Close();
  // A browser shows nothing if a connection just ends, so an explanation is sent in plain HTTP.
  const Response told = Unreadable(400, "tls", "this port speaks HTTPS; use https://");
  host_->OnAnswer(told.status);
  outgoing_ = HeadText(Head(told, told.body.size(), /*keep=*/false, host_->DateNow())) + told.body;
  SetDeadline(limits_->write_time_max);
  asio::async_write(stream_.socket(), asio::buffer(outgoing_),
                    [self = shared_from_this()](const error_code& failed, size_t /*bytes*/) {
                      if (self->closed_) return;
                      if (failed) return self->Close();
                      error_code ignored;
                      self->stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
                      self->SetDeadline(kLingerTimeMax);
                      self->Linger();
                    });
}

void HttpConnection::AwaitRequest() {
  waiting_ = true;
  waiting_since_ = host_->NextTurn();
  if (buffer_.size() > 0) return ReadHead();
  SetDeadline(limits_->idle_time_max);
  stream_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](const error_code& error, size_t bytes) {
                            if (self->closed_) return;
                            if (error) return self->Close();
                            self->buffer_.commit(bytes);
                            self->ReadHead();
                          });
}

void HttpConnection::ReadHead() {
  head_request_ = false;
  keep_alive_ = false;
  parser_.emplace();
  parser_->header_limit(limits_->header_bytes_max);
  parser_->body_limit(limits_->body_bytes_max);
  SetDeadline(limits_->header_time_max);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
                            if (self->closed_) return;
                            if (error) return self->OnReadError(error);
                            self->OnHead();
                          });
}

void HttpConnection::OnHead() {
  if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return ReadBody();
  SetDeadline(limits_->write_time_max);
  outgoing_ = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(outgoing_),
                    [self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
                      if (self->closed_) return;
                      if (error) return self->Close();
                      self->ReadBody();
                    });
}

void HttpConnection::ReadBody() {
  SetDeadline(limits_->body_time_max);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
                     if (self->closed_) return;
                     if (error) return self->OnReadError(error);
                     self->OnBody();
                   });
}

void HttpConnection::OnBody() {
  ClearDeadline();
  waiting_ = false;
  auto message = parser_->release();
  parser_.reset();
  head_request_ = message.method() == http::verb::head;
  keep_alive_ = message.keep_alive() && message.version() == 11;
  host_->OnRequest(shared_from_this(), ToRequest(std::move(message)));
}

void HttpConnection::OnReadError(const error_code& error) {
  ClearDeadline();
  waiting_ = false;
  if (timed_out_) {
    return Refuse(Unreadable(408, "too-slow", "the request did not come to its end in time"));
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Refuse(Unreadable(
        431, "header",
        fmt::format("the request's head is larger than {} bytes", limits_->header_bytes_max)));
  }
  if (error == http::error::body_limit) {
    return Refuse(Unreadable(
        413, "body",
        fmt::format("the request's body is larger than {} bytes", limits_->body_bytes_max)));
  }
  const bool malformed = error.category() == make_error_code(http::error::bad_method).category();
  if (malformed && error != http::error::end_of_stream && error != http::error::partial_message) {
    return Refuse(
        Unreadable(400, "malformed", fmt::format("this is no HTTP request: {}", error.message())));
  }
  Close();
}

void HttpConnection::Refuse(const Response& response) {
  head_request_ = false;
  keep_alive_ = false;
  host_->OnAnswer(response.status);
  WriteResponse(response, /*keep=*/false);
}

void HttpConnection::Respond(const Response& response) {
  WriteResponse(response, keep_alive_);
}

void HttpConnection::WriteResponse(const Response& response, bool keep) {
  if (closed_) return;
  outgoing_ = HeadText(Head(response, response.body.size(), keep, host_->DateNow()));
  if (!head_request_) outgoing_ += response.body;
  SetDeadline(limits_->write_time_max);
  asio::async_write(stream_, asio::buffer(outgoing_),
                    [self = shared_from_this(), keep](const error_code& error, size_t /*bytes*/) {
                      if (self->closed_) return;
                      if (error) return self->Close();
                      self->outgoing_ = std::string();
                      if (keep) return self->AwaitRequest();
                      self->SetDeadline(kLingerTimeMax);
                      self->stream_.AsyncEnd([self](const error_code&) {
                        if (!self->closed_) self->Linger();
                      });
                    });
}

void HttpConnection::Linger() {
  buffer_.clear();
  // Reads from the socket directly, also under TLS, because the bytes are thrown away.
  stream_.socket().async_read_some(
      buffer_.prepare(kReadBytes),
      [self = shared_from_this()](const error_code& error, size_t bytes) {
        if (self->closed_) return;
        self->lingered_bytes_ += bytes;
        if (error || self->lingered_bytes_ > kLingerBytesMax) {
          return self->Close();
        }
        self->Linger();
      });
}

void HttpConnection::Stream(const Response& response, std::string text,
                            std::function<void()> on_written) {
  if (closed_) return;
  const auto head = Head(response, std::nullopt, /*keep=*/false, host_->DateNow());
  if (head_request_) {
    // The answer to HEAD has no body, so there is no stream.
    Response nothing = response;
    nothing.body.clear();
    return WriteResponse(nothing, /*keep=*/false);
  }
  ClearDeadline();
  on_written_ = std::move(on_written);
  Write(HeadText(head) + text);
  AwaitEndOfStream();
}

void HttpConnection::Write(std::string text) {
  if (closed_) return;
  outgoing_ = std::move(text);
  asio::async_write(stream_, asio::buffer(outgoing_),
                    [self = shared_from_this()](const error_code& error, size_t /*bytes*/) {
                      if (self->closed_) return;
                      if (error) return self->Close();
                      // It calls a copy, because the call may close the connection and so destroy
                      // the function.
                      if (const auto on_written = self->on_written_) on_written();
                    });
}

void HttpConnection::AwaitEndOfStream() {
  // A peer that reads a stream has nothing more to send. Whatever comes from it ends the stream.
  buffer_.clear();
  stream_.async_read_some(
      buffer_.prepare(kReadBytes),
      [self = shared_from_this()](const error_code&, size_t) { self->Close(); });
}

}  // namespace muster::scaler::rest
