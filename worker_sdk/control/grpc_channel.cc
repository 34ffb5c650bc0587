#include "worker_sdk/control/grpc_channel.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/address.h"
#include "base/status.h"
#include "net/connector.h"

namespace muster::sdk {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int32_t kWindowBytes = 8 << 20;
/// Frames are sent when so many bytes of them are there.
constexpr size_t kSendBytes = size_t{64} << 10;

absl::Status Unavailable(std::string_view address, std::string_view why) {
  return absl::UnavailableError(
      fmt::format("the master at {} cannot be reached: {}", address, why));
}

/// Undoes the percent-encoding of grpc-message.
std::string PercentDecode(std::string_view text) {
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Of grpc-status. What is no status is kUnknown, as gRPC says.
int ParseGrpcStatus(std::string_view text) {
  constexpr int kUnknown = 2;
  constexpr int kLast = 16;
  int status = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  const bool known = error == std::errc() && end == text.data() + text.size();
  return known && status >= 0 && status <= kLast ? status : kUnknown;
}

nghttp2_nv Field(std::string_view name, std::string_view value) {
  auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

/// One call's state; the nghttp2 callbacks fill it in.
struct CallState {
  int32_t stream = -1;
  std::string_view body;  // what is still to be sent
  std::string response;
  std::string http_status;
  std::optional<int> grpc_status;
  std::string grpc_message;
  bool closed = false;
  bool too_large = false;
  uint32_t stream_error = 0;
};

ssize_t ReadBody(nghttp2_session*, int32_t, uint8_t* buffer, size_t length, uint32_t* flags,
                 nghttp2_data_source* source, void*) {
  auto* call = static_cast<CallState*>(source->ptr);
  size_t n = std::min(length, call->body.size());
  std::memcpy(buffer, call->body.data(), n);
  call->body.remove_prefix(n);
  if (call->body.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(n);
}

/// Copies a status that says where the call failed.
absl::Status StatusOf(const CallState& call, std::string_view address) {
  if (call.too_large) {
    return absl::ResourceExhaustedError(fmt::format("the master at {} sent more than {} bytes",
                                                    address, GrpcChannel::kResponseBytesMax));
  }
  if (call.grpc_status) {
    if (*call.grpc_status == 0) return absl::OkStatus();
    return absl::Status(static_cast<absl::StatusCode>(*call.grpc_status), call.grpc_message);
  }
  if (!call.http_status.empty() && call.http_status != "200") {
    return Unavailable(
        address, fmt::format("it answered HTTP status {}, so it is no master", call.http_status));
  }
  return Unavailable(
      address, fmt::format("it ended the call ({})", nghttp2_http2_strerror(call.stream_error)));
}

}  // namespace

struct GrpcChannel::Connection {
  asio::io_context io{1};  // runs only within a call
  std::unique_ptr<net::ByteStream> stream;
  nghttp2_session* session = nullptr;
  CallState* call = nullptr;    // null between calls
  std::vector<uint8_t> frames;  // that are sent now
  std::array<uint8_t, 64 << 10> buffer;
  /// How a read or write has ended; nothing while it is under way.
  struct End {
    error_code error;
    size_t bytes = 0;
  };
  std::optional<End> read, written;

  ~Connection() {
    if (session != nullptr) nghttp2_session_del(session);
  }

  absl::Status Connect(const std::string& address, const net::TlsContextSource& source,
                       SteadyTime deadline);
  absl::Status StartSession();
  /// Begins the next read. One is under way also between calls.
  void Receive();
  /// Runs the reads and writes until `*end` is there.
  absl::Status Await(const std::optional<End>* end, SteadyTime deadline);
  /// Sends what is queued and reads what is there, blocking until something could be done.
  absl::Status Pump(SteadyTime deadline);
  absl::Status SendQueued(SteadyTime deadline);
  /// True when the server has closed the kept connection, or said that it will.
  bool Dead();

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_length, const uint8_t* value, size_t value_length, uint8_t,
                      void* user) {
    CallState* call = static_cast<Connection*>(user)->call;
    if (call == nullptr || frame->hd.stream_id != call->stream) return 0;
    std::string_view key(reinterpret_cast<const char*>(name), name_length);
    std::string_view text(reinterpret_cast<const char*>(value), value_length);
    if (key == ":status") call->http_status = text;
    if (key == "grpc-message") call->grpc_message = PercentDecode(text);
    if (key == "grpc-status") call->grpc_status = ParseGrpcStatus(text);
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t length,
                    void* user) {
    CallState* call = static_cast<Connection*>(user)->call;
    if (call == nullptr || stream != call->stream) return 0;
    if (call->response.size() + length > kResponseBytesMax) {
      call->too_large = true;
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    call->response.append(reinterpret_cast<const char*>(data), length);
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
    CallState* call = static_cast<Connection*>(user)->call;
    if (call == nullptr || stream != call->stream) return 0;
    call->closed = true;
    call->stream_error = error;
    return 0;
  }
};

absl::Status GrpcChannel::Connection::Connect(const std::string& address,
                                              const net::TlsContextSource& source,
                                              SteadyTime deadline) {
  MUSTER_RETURN_IF_ERROR(ParseHostPort(address).status());
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  std::optional<absl::StatusOr<net::Connector::Made>> made;
  const auto connector = std::make_shared<net::Connector>(
      io.get_executor(),
      net::Connector::Options{.addresses = {address},
                              .timeout = std::max(left, std::chrono::milliseconds(1)),
                              .tls = source,
                              .tls_options = {.protocol = "h2"}},
      [&made](absl::StatusOr<net::Connector::Made> result) { made = std::move(result); });
  connector->Start();
  while (!made.has_value()) io.run_one();
  // A name may get its address later.
  if (!made->ok()) return Unavailable(address, connector->why());
  stream = std::move((*made)->stream);
  Receive();
  return StartSession();
}

void GrpcChannel::Connection::Receive() {
  read.reset();
  stream->ReadSome(asio::buffer(buffer),
                   [this](const error_code& error, size_t bytes) { read = {error, bytes}; });
}

absl::Status GrpcChannel::Connection::Await(const std::optional<End>* end, SteadyTime deadline) {
  io.restart();
  while (!end->has_value()) {
    if (io.run_one_until(deadline) == 0) return absl::DeadlineExceededError("no answer in time");
  }
  const error_code& error = (*end)->error;
  if (!error) return absl::OkStatus();
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    return absl::UnavailableError("it closed the connection");
  }
  const std::string failure(stream->failure());
  return absl::UnavailableError(failure.empty() ? error.message() : failure);
}

absl::Status GrpcChannel::Connection::StartSession() {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) {
    return absl::ResourceExhaustedError("no memory for an HTTP/2 session");
  }
  nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
  int error = nghttp2_session_client_new(&session, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  if (error != 0) return absl::InternalError(nghttp2_strerror(error));
  std::array<nghttp2_settings_entry, 2> settings = {
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes}}};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
  return absl::OkStatus();
}

absl::Status GrpcChannel::Connection::SendQueued(SteadyTime deadline) {
  bool more = true;
  while (more) {
    // The frames of a call in one piece, so that they wake the server once.
    frames.clear();
    while (more && frames.size() < kSendBytes) {
      const uint8_t* data = nullptr;
      const ssize_t length = nghttp2_session_mem_send(session, &data);
      if (length < 0) return absl::UnavailableError(nghttp2_strerror(static_cast<int>(length)));
      frames.insert(frames.end(), data, data + length);
      more = length > 0;
    }
    if (frames.empty()) return absl::OkStatus();
    written.reset();
    stream->Write({asio::buffer(frames)},
                  [this](const error_code& error, size_t bytes) { written = {error, bytes}; });
    MUSTER_RETURN_IF_ERROR(Await(&written, deadline));
  }
  return absl::OkStatus();
}

absl::Status GrpcChannel::Connection::Pump(SteadyTime deadline) {
  MUSTER_RETURN_IF_ERROR(SendQueued(deadline));
  MUSTER_RETURN_IF_ERROR(Await(&read, deadline));
  const ssize_t used = nghttp2_session_mem_recv(session, buffer.data(), read->bytes);
  if (used < 0) return absl::UnavailableError(nghttp2_strerror(static_cast<int>(used)));
  Receive();
  MUSTER_RETURN_IF_ERROR(SendQueued(deadline));
  if (nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0) {
    return absl::UnavailableError("it does not speak HTTP/2");
  }
  return absl::OkStatus();
}

bool GrpcChannel::Connection::Dead() {
  // Frames that arrived between two calls: settings, pings, GOAWAY.
  io.restart();
  for (io.poll(); read.has_value(); io.poll()) {
    const SteadyTime soon = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    if (!Pump(soon).ok()) return true;
  }
  return nghttp2_session_check_request_allowed(session) == 0;
}

GrpcChannel::GrpcChannel(std::string address, net::TlsContextSource tls)
    : address_(std::move(address)), tls_(std::move(tls)) {}
GrpcChannel::~GrpcChannel() = default;

absl::StatusOr<std::string> GrpcChannel::Call(std::string_view method, std::string_view request,
                                              std::chrono::milliseconds timeout) {
  SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  if (connection_ && connection_->Dead()) connection_.reset();
  bool kept = connection_ != nullptr;
  bool nothing_answered = false;
  absl::StatusOr<std::string> result = CallOnce(method, request, deadline, &nothing_answered);
  if (!result.ok() && kept && nothing_answered && absl::IsUnavailable(result.status())) {
    connection_.reset();  // it may stand, but take no more calls
    result = CallOnce(method, request, deadline, &nothing_answered);
  }
  return result;
}

absl::StatusOr<std::string> GrpcChannel::CallOnce(std::string_view method, std::string_view request,
                                                  SteadyTime deadline, bool* nothing_answered) {
  if (!connection_) {
    auto fresh = std::make_unique<Connection>();
    MUSTER_RETURN_IF_ERROR(fresh->Connect(address_, tls_, deadline));
    connection_ = std::move(fresh);
  }
  // A message is preceded by "not compressed" and its length, big-endian.
  std::string body(5, '\0');
  for (int i = 0; i < 4; ++i) body[4 - i] = static_cast<char>(request.size() >> (8 * i));
  body.append(request);
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  std::string grpc_timeout = fmt::format("{}m", std::clamp<int64_t>(left.count(), 1, 99'999'999));
  std::vector<nghttp2_nv> headers = {Field(":method", "POST"),
                                     Field(":scheme", tls_ ? "https" : "http"),
                                     Field(":path", method),
                                     Field(":authority", address_),
                                     Field("te", "trailers"),
                                     Field("content-type", "application/grpc"),
                                     Field("grpc-timeout", grpc_timeout),
                                     Field("user-agent", "muster-sdk")};
  for (const auto& [name, value] : metadata_) headers.push_back(Field(name, value));
  CallState call;
  call.body = body;
  nghttp2_data_provider provider{};
  provider.source.ptr = &call;
  provider.read_callback = ReadBody;
  call.stream = nghttp2_submit_request(connection_->session, nullptr, headers.data(),
                                       headers.size(), &provider, nullptr);
  if (call.stream < 0) {
    connection_.reset();
    *nothing_answered = true;
    return Unavailable(address_, "its connection takes no more calls");
  }
  connection_->call = &call;
  absl::Status status = absl::OkStatus();
  while (!call.closed && status.ok()) status = connection_->Pump(deadline);
  connection_->call = nullptr;
  *nothing_answered = call.http_status.empty() && !call.grpc_status;
  if (!status.ok() && !call.closed) {
    connection_.reset();  // in an unknown state
    if (call.too_large) return StatusOf(call, address_);
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(
          fmt::format("the master at {} did not answer {} in time", address_, method));
    }
    return Unavailable(address_, Message(status));
  }
  MUSTER_RETURN_IF_ERROR(StatusOf(call, address_));
  if (call.response.size() < 5 || call.response[0] != 0) {
    return absl::InternalError(
        fmt::format("the master at {} answered {} without a plain message", address_, method));
  }
  uint32_t length = 0;
  for (int i = 1; i < 5; ++i) length = length << 8 | static_cast<uint8_t>(call.response[i]);
  if (call.response.size() != size_t{length} + 5) {
    return absl::InternalError(
        fmt::format("the master at {} answered {} with {} bytes instead of {}", address_, method,
                    call.response.size() - 5, length));
  }
  return call.response.substr(5);
}

}  // namespace muster::sdk
