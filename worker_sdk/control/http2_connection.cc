#include "worker_sdk/control/http2_connection.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <cstring>
#include <map>

#include "base/check.h"

namespace muster::sdk {
namespace {

constexpr int32_t kWindowBytes = 8 << 20;
/// Frames are sent as soon as there are this many bytes of them.
constexpr size_t kSendBytes = size_t{64} << 10;

/// One call and the stream that carries it.
struct Exchange {
  std::string body;
  size_t sent = 0;  // of `body`
  Http2Answer answer;
  Http2Connection::Done done;
};

nghttp2_nv Field(std::string_view name, std::string_view value) {
  auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string TextOf(const uint8_t* bytes, size_t length) {
  return {reinterpret_cast<const char*>(bytes), length};
}

ssize_t ReadBody(nghttp2_session*, int32_t, uint8_t* buffer, size_t length, uint32_t* flags,
                 nghttp2_data_source* source, void*) {
  auto* exchange = static_cast<Exchange*>(source->ptr);
  const size_t n = std::min(length, exchange->body.size() - exchange->sent);
  std::memcpy(buffer, exchange->body.data() + exchange->sent, n);
  exchange->sent += n;
  if (exchange->sent == exchange->body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(n);
}

}  // namespace

struct Http2Connection::Inside {
  nghttp2_session* session = nullptr;
  std::map<int32_t, std::unique_ptr<Exchange>> open;  // by the ids of their streams
  std::vector<std::unique_ptr<Exchange>> ended;       // their callers have not been told yet
  std::array<uint8_t, 64 << 10> input;
  std::vector<uint8_t> output;

  Inside() {
    nghttp2_session_callbacks* callbacks = nullptr;
    MUSTER_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    MUSTER_CHECK(nghttp2_session_client_new(&session, callbacks, this) == 0);
    nghttp2_session_callbacks_del(callbacks);
    const std::array<nghttp2_settings_entry, 2> settings = {
        {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes}}};
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
  }
  ~Inside() { nghttp2_session_del(session); }

  Exchange* Of(int32_t stream) const {
    const auto found = open.find(stream);
    return found == open.end() ? nullptr : found->second.get();
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_length, const uint8_t* value, size_t value_length, uint8_t,
                      void* user) {
    Exchange* const exchange = static_cast<Inside*>(user)->Of(frame->hd.stream_id);
    if (exchange == nullptr) return 0;
    exchange->answer.fields.emplace_back(TextOf(name, name_length), TextOf(value, value_length));
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t length,
                    void* user) {
    Exchange* const exchange = static_cast<Inside*>(user)->Of(stream);
    if (exchange == nullptr) return 0;
    Http2Answer& answer = exchange->answer;
    answer.too_large = answer.body.size() + length > answer.bytes_max;
    if (answer.too_large) return NGHTTP2_ERR_CALLBACK_FAILURE;
    answer.body += TextOf(data, length);
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
    auto* const inside = static_cast<Inside*>(user);
    Exchange* const exchange = inside->Of(stream);
    if (exchange == nullptr) return 0;
    exchange->answer.ended = nghttp2_http2_strerror(error);
    inside->ended.push_back(std::move(inside->open.extract(stream).mapped()));
    return 0;
  }
};

Http2Connection::Http2Connection(std::unique_ptr<net::ByteStream> stream)
    : stream_(std::move(stream)), inside_(std::make_unique<Inside>()) {}

Http2Connection::~Http2Connection() = default;

std::shared_ptr<Http2Connection> Http2Connection::Start(std::unique_ptr<net::ByteStream> stream) {
  std::shared_ptr<Http2Connection> connection(new Http2Connection(std::move(stream)));
  connection->Read();
  return connection;
}

bool Http2Connection::MayCall() const {
  return !broken_ && nghttp2_session_check_request_allowed(inside_->session) != 0;
}

void Http2Connection::Call(const Http2Fields& fields, std::string body, size_t answer_bytes_max,
                           Done done) {
  used_ = true;
  auto exchange = std::make_unique<Exchange>();
  exchange->body = std::move(body);
  exchange->answer.bytes_max = answer_bytes_max;
  exchange->done = std::move(done);
  std::vector<nghttp2_nv> list;
  for (const auto& [name, value] : fields) list.push_back(Field(name, value));
  nghttp2_data_provider provider{};
  provider.source.ptr = exchange.get();
  provider.read_callback = ReadBody;
  const int32_t stream = nghttp2_submit_request(inside_->session, nullptr, list.data(), list.size(),
                                                &provider, nullptr);
  if (stream < 0) {
    inside_->ended.push_back(std::move(exchange));
    return Break("its connection takes no more calls");
  }
  inside_->open.emplace(stream, std::move(exchange));
  Write();
}

void Http2Connection::Break(std::string_view why) {
  if (broken_) return;
  broken_ = true;
  stream_->Close();
  for (auto& [stream, exchange] : std::exchange(inside_->open, {})) {
    inside_->ended.push_back(std::move(exchange));
  }
  for (const auto& exchange : inside_->ended) {
    if (exchange->answer.ended.empty()) exchange->answer.broken = why;
  }
  // The pending read ends with an error, and its handler tells the callers.
}

void Http2Connection::Read() {
  stream_->ReadSome(boost::asio::buffer(inside_->input), [self = shared_from_this()](
                                                             const boost::system::error_code& error,
                                                             size_t bytes) {
    if (error && !self->broken_) {
      const bool end =
          error == boost::asio::error::eof || error == boost::asio::ssl::error::stream_truncated;
      const std::string failure(self->stream_->failure());
      self->Break(end ? "it closed the connection" : !failure.empty() ? failure : error.message());
    }
    if (!self->broken_) self->OnBytes(bytes);
    self->TellEnded();
    if (!self->broken_) self->Read();
  });
}

void Http2Connection::OnBytes(size_t bytes) {
  nghttp2_session* const session = inside_->session;
  const ssize_t used = nghttp2_session_mem_recv(session, inside_->input.data(), bytes);
  if (used < 0) return Break(nghttp2_strerror(static_cast<int>(used)));
  Write();
}

void Http2Connection::Write() {
  if (writing_ || broken_) return;
  // All frames of a call are sent in one piece, so that they wake the server once.
  std::vector<uint8_t>& output = inside_->output;
  output.clear();
  while (output.size() < kSendBytes) {
    const uint8_t* data = nullptr;
    const ssize_t length = nghttp2_session_mem_send(inside_->session, &data);
    if (length < 0) return Break(nghttp2_strerror(static_cast<int>(length)));
    if (length == 0) break;
    output.insert(output.end(), data, data + length);
  }
  if (output.empty()) {
    // If the peer breaks the rules, the session has sent it an error, perhaps while something else
    // was being written. Then it is over.
    const bool over = nghttp2_session_want_read(inside_->session) == 0 &&
                      nghttp2_session_want_write(inside_->session) == 0;
    return over ? Break("it does not speak HTTP/2") : void();
  }
  writing_ = true;
  stream_->Write({boost::asio::buffer(output)},
                 [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                   self->writing_ = false;
                   if (error) self->Break(error.message());
                   self->Write();
                 });
}

void Http2Connection::TellEnded() {
  while (!inside_->ended.empty()) {
    for (const auto& exchange : std::exchange(inside_->ended, {})) exchange->done(exchange->answer);
  }
}

}  // namespace muster::sdk
