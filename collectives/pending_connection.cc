#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/text.h"
#include "collectives/internal/pending_connection.h"
#include "collectives/internal/streams.h"

namespace muster::collectives::internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

PendingConnection::PendingConnection(net::Socket socket, std::shared_ptr<ssl_ctx_st> context,
                                     RingSharing* sharing, Greeted greeted)
    : sharing_(sharing), greeted_(std::move(greeted)), deadline_(socket.get_executor()) {
  net::Prepare(&socket, kSocketSettings);
  if (context == nullptr) {
    plain_ = new net::SocketStream(std::move(socket), kStepBytes);
    stream_.reset(plain_);
  } else {
    tls_ = new net::TlsStream(std::move(socket), context.get(), net::TlsStream::Side::kServer,
                              kStepBytes);
    stream_.reset(tls_);
  }
}

template <typename Then>
net::ByteStream::Handler PendingConnection::Guarded(Then then) {
  return [self = shared_from_this(), then](const error_code& error, size_t /*bytes*/) {
    if (!self->greeted_) return;
    if (error) return self->Fail();
    then(self.get());
  };
}

void PendingConnection::Start(std::chrono::milliseconds timeout) {
  deadline_.expires_after(timeout);
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->greeted_) self->Fail();
  });
  if (tls_ == nullptr) return ReadHello();
  tls_->Handshake(Guarded([](PendingConnection* self) { self->ReadHello(); }));
}

void PendingConnection::ReadHello() {
  stream_->ReadOne(
      asio::buffer(header_bytes_), Guarded([](PendingConnection* self) {
        const auto header = DecodeFrameHeader(self->header_bytes_);
        if (!header.ok() || header->kind != FrameKind::kHello || header->payload_bytes == 0) {
          return self->Fail();
        }
        self->message_.resize(header->payload_bytes);
        self->ReadMessage();
      }));
}

void PendingConnection::ReadMessage() {
  stream_->ReadOne(asio::buffer(message_),
                   Guarded([](PendingConnection* self) { self->OnHello(); }));
}

void PendingConnection::OnHello() {
  absl::StatusOr<Hello> hello = DecodeMessage<Hello>(message_);
  if (!hello.ok()) return Fail();
  hello_ = *std::move(hello);
  deadline_.cancel();
  std::exchange(greeted_, nullptr)(shared_from_this(), &hello_);
}

void PendingConnection::Fail() {
  const auto self = shared_from_this();
  const Greeted greeted = std::exchange(greeted_, nullptr);
  Close();
  greeted(self, nullptr);
}

void PendingConnection::Refuse(std::string_view why, bool again) {
  reply_ =
      EncodeFrame(FrameKind::kHelloReply, EncodeMessage(HelloReply{ValidUtf8(why, 1'000), again}));
  stream_->Write({asio::buffer(reply_)},
                 [self = shared_from_this()](const error_code&, size_t) { self->Close(); });
}

std::unique_ptr<net::ByteStream> PendingConnection::ShareMemory() {
  if (plain_ == nullptr || hello_.ring_bytes_max == 0 || !net::IsUnix(plain_->socket())) {
    return nullptr;
  }
  auto rings = std::make_unique<net::OfferedRings>(&sharing_->budget);
  const size_t bytes =
      rings->Make(std::min(hello_.ring_bytes_max, sharing_->ring_bytes), hello_.worker);
  if (bytes == 0) return nullptr;
  const std::string reply =
      EncodeFrame(FrameKind::kHelloReply,
                  EncodeMessage(HelloReply{.ring_bytes = static_cast<uint32_t>(bytes)}));
  // It fits: nothing has been sent before.
  const int fd = plain_->socket().native_handle();
  const ssize_t sent = ::send(fd, reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  absl::StatusOr<net::RingMemory> memory = absl::UnavailableError("the peer has gone");
  if (std::cmp_equal(sent, reply.size())) memory = rings->HandOver(fd);
  if (!memory.ok()) {
    // The peer connects again, and does not ask for memory.
    stream_->Close();
    return nullptr;
  }
  return MadeRings(std::move(plain_->socket()), *std::move(memory), std::move(rings), *sharing_);
}

std::shared_ptr<Link> PendingConnection::Accept(Link::Handler* handler) {
  if (auto rings = ShareMemory(); rings != nullptr) {
    return std::make_shared<Link>(std::move(rings), hello_.checked, handler);
  }
  auto link = std::make_shared<Link>(std::move(stream_), hello_.checked, handler);
  link->SendMessage(FrameKind::kHelloReply, EncodeMessage(HelloReply{}));
  return link;
}

void PendingConnection::Close() {
  greeted_ = nullptr;
  deadline_.cancel();
  if (stream_ != nullptr) stream_->Close();
}

}  // namespace muster::collectives::internal
