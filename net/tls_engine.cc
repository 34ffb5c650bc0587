#include "net/tls_engine.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "security/tls_context.h"

namespace muster::net {

namespace asio = boost::asio;

/// Encrypted bytes: [in_begin, in_end) of `in` are received and not yet decrypted, and
/// [out_begin, end) of `out` are not yet sent.
struct TlsEngine::Bytes {
  /// Room for four records in each system call.
  static constexpr size_t kInBytes = 64u << 10;

  std::vector<std::byte> in = std::vector<std::byte>(kInBytes);
  size_t in_begin = 0, in_end = 0;
  bool in_ended = false;
  std::vector<std::byte> out;
  size_t out_begin = 0;

  static int Read(BIO* bio, char* into, int size) {
    auto* bytes = static_cast<Bytes*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const size_t count = std::min(static_cast<size_t>(size), bytes->in_end - bytes->in_begin);
    if (count == 0) {
      if (bytes->in_ended) return 0;
      BIO_set_retry_read(bio);
      return -1;
    }
    std::memcpy(into, bytes->in.data() + bytes->in_begin, count);
    bytes->in_begin += count;
    return static_cast<int>(count);
  }
  static int Write(BIO* bio, const char* from, int size) {
    auto* bytes = static_cast<Bytes*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const auto* begin = reinterpret_cast<const std::byte*>(from);
    bytes->out.insert(bytes->out.end(), begin, begin + size);
    return size;
  }
  static long Control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    auto* bytes = static_cast<Bytes*>(BIO_get_data(bio));
    if (command == BIO_CTRL_EOF) return bytes->in_ended && bytes->in_begin == bytes->in_end;
    return command == BIO_CTRL_FLUSH;
  }
  static int Create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }
  /// OpenSSL reads and writes encrypted bytes through it. `bytes` must outlive it.
  static BIO* NewBio(Bytes* bytes) {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster");
      MUSTER_CHECK(made != nullptr);
      BIO_meth_set_read(made, Read);
      BIO_meth_set_write(made, Write);
      BIO_meth_set_ctrl(made, Control);
      BIO_meth_set_create(made, Create);
      return made;
    }();
    BIO* bio = BIO_new(method);
    MUSTER_CHECK(bio != nullptr);
    BIO_set_data(bio, bytes);
    return bio;
  }
};

TlsContextSource SourceOf(std::shared_ptr<TlsContext> context) {
  return [context = std::move(context)] {
    const TlsContext::Context newest = context->Get();
    return std::shared_ptr<ssl_ctx_st>(newest, newest->native_handle());
  };
}

void TlsEngine::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsEngine::TlsEngine(ssl_ctx_st* context, Side side, const Options& options)
    : bytes_(std::make_unique<Bytes>()),
      ssl_(SSL_new(context)),
      key_bytes_max_(options.key_bytes_max) {
  MUSTER_CHECK(ssl_ != nullptr);
  BIO* bio = Bytes::NewBio(bytes_.get());
  SSL_set_bio(ssl_.get(), bio, bio);
  if (side == Side::kServer) {
    SSL_set_accept_state(ssl_.get());
    // If the client has not read a ticket when it closes, that resets the connection. And a resumed
    // session would skip the check of the certificate. So there are no tickets.
    SSL_set_num_tickets(ssl_.get(), 0);
  } else {
    SSL_set_connect_state(ssl_.get());
  }
  if (!options.protocol.empty()) {
    std::string list(1, static_cast<char>(options.protocol.size()));
    list += options.protocol;
    MUSTER_CHECK(SSL_set_alpn_protos(ssl_.get(),
                                     reinterpret_cast<const unsigned char*>(list.data()),
                                     static_cast<unsigned>(list.size())) == 0);
  }
}

TlsEngine::~TlsEngine() = default;

TlsEngine::Step TlsEngine::StepOf(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
      return Step::kDone;
    case SSL_ERROR_WANT_READ:
      return Step::kNeedsBytes;
    case SSL_ERROR_ZERO_RETURN:
      return Step::kEnded;
    default:
      break;
  }
  const bool truncated = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (truncated && handshake_done_) {
    over_ = Step::kTruncated;
  } else {
    Fail();
  }
  return *over_;
}

void TlsEngine::Fail() {
  over_ = Step::kFailed;
  const unsigned long error = ERR_peek_error();
  const bool ended = ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  const boost::system::error_code code(static_cast<int>(error), asio::error::get_ssl_category());
  failure_ = TlsErrorText(ended ? asio::error::eof : code, ssl_.get());
}

TlsEngine::Step TlsEngine::Handshake() {
  if (over_.has_value()) return *over_;
  ERR_clear_error();
  const Step step = StepOf(SSL_do_handshake(ssl_.get()));
  handshake_done_ = step == Step::kDone;
  return step;
}

TlsEngine::Step TlsEngine::Read(std::span<std::byte> into, size_t* bytes) {
  *bytes = 0;
  if (over_.has_value()) return *over_;
  MUSTER_CHECK(handshake_done_);
  ERR_clear_error();
  return StepOf(SSL_read_ex(ssl_.get(), into.data(), into.size(), bytes));
}

bool TlsEngine::Write(std::span<const std::byte> from) {
  if (over_ == Step::kFailed) return false;
  MUSTER_CHECK(handshake_done_);
  if (from.empty()) return true;
  ERR_clear_error();
  key_bytes_ += from.size();
  if (key_bytes_ > key_bytes_max_) {
    key_bytes_ = from.size();
    // The next write tells the peer first.
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  size_t written = 0;
  if (SSL_write_ex(ssl_.get(), from.data(), from.size(), &written) == 1) return true;
  Fail();
  return false;
}

void TlsEngine::End() {
  if (!handshake_done_ || over_.has_value()) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());  // 0: the peer has not ended its direction yet
}

std::span<std::byte> TlsEngine::Room() {
  Bytes& bytes = *bytes_;
  if (bytes.in_begin == bytes.in_end) bytes.in_begin = bytes.in_end = 0;
  return std::span(bytes.in).subspan(bytes.in_end);
}

bool TlsEngine::has_input() const {
  return bytes_->in_begin < bytes_->in_end || SSL_has_pending(ssl_.get()) == 1;
}

void TlsEngine::Received(size_t bytes) {
  bytes_->in_end += bytes;
  MUSTER_CHECK(bytes_->in_end <= bytes_->in.size());
}

void TlsEngine::ReceivedEnd() {
  bytes_->in_ended = true;
}

std::span<const std::byte> TlsEngine::output() const {
  return std::span<const std::byte>(bytes_->out).subspan(bytes_->out_begin);
}

void TlsEngine::Sent(size_t bytes) {
  bytes_->out_begin += bytes;
  MUSTER_CHECK(bytes_->out_begin <= bytes_->out.size());
  if (bytes_->out_begin < bytes_->out.size()) return;
  bytes_->out.clear();  // keeps its memory
  bytes_->out_begin = 0;
}

}  // namespace muster::net
