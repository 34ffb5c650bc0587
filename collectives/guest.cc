#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/text.h"
#include "collectives/internal/guest.h"
#include "collectives/internal/streams.h"

namespace muster::collectives::internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

Guest::Guest(net::Socket socket, std::shared_ptr<ssl_ctx_st> context, Greeted greeted)
    : greeted_(std::move(greeted)), deadline_(socket.get_executor()) {
  if (context == nullptr) {
    stream_ = PlainStream(std::move(socket));
    return;
  }
  auto tls = EncryptedStream(std::move(socket), context.get(), net::TlsStream::Side::kServer);
  tls_ = tls.get();
  stream_ = std::move(tls);
}

template <typename Then>
net::ByteStream::Handler Guest::Guarded(Then then) {
  return [self = shared_from_this(), then](const error_code& error, size_t /*bytes*/) {
    if (!self->greeted_) return;
    if (error) return self->Fail();
    then(self.get());
  };
}

void Guest::Start(std::chrono::milliseconds timeout) {
  deadline_.expires_after(timeout);
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->greeted_) self->Fail();
  });
  if (tls_ == nullptr) return ReadHello();
  tls_->Handshake(Guarded([](Guest* self) { self->ReadHello(); }));
}

void Guest::ReadHello() {
  stream_->ReadOne(
      asio::buffer(header_bytes_), Guarded([](Guest* self) {
        const auto header = DecodeFrameHeader(self->header_bytes_);
        if (!header.ok() || header->kind != FrameKind::kHello || header->payload_bytes == 0) {
          return self->Fail();
        }
        self->message_.resize(header->payload_bytes);
        self->ReadMessage();
      }));
}

void Guest::ReadMessage() {
  stream_->ReadOne(asio::buffer(message_), Guarded([](Guest* self) { self->OnHello(); }));
}

void Guest::OnHello() {
  absl::StatusOr<Hello> hello = DecodeHelloMessage(message_);
  if (!hello.ok()) return Fail();
  hello_ = *std::move(hello);
  deadline_.cancel();
  std::exchange(greeted_, nullptr)(shared_from_this(), &hello_);
}

void Guest::Fail() {
  const auto self = shared_from_this();
  const Greeted greeted = std::exchange(greeted_, nullptr);
  Close();
  greeted(self, nullptr);
}

void Guest::Refuse(std::string_view why, bool again) {
  reply_ =
      EncodeFrame(FrameKind::kHelloReply, EncodeMessage(HelloReply{ValidUtf8(why, 1'000), again}));
  stream_->Write({asio::buffer(reply_)},
                 [self = shared_from_this()](const error_code&, size_t) { self->Close(); });
}

std::unique_ptr<net::ByteStream> Guest::Accept() {
  return std::move(stream_);
}

void Guest::Close() {
  greeted_ = nullptr;
  deadline_.cancel();
  if (stream_ != nullptr) stream_->Close();
}

}  // namespace muster::collectives::internal
