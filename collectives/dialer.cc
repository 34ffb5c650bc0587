#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "base/address.h"
#include "base/descriptors.h"
#include "base/status.h"
#include "collectives/internal/dialer.h"
#include "collectives/internal/streams.h"
#include "net/endpoints.h"
#include "net/tls_stream.h"

namespace muster::collectives::internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Before the addresses are tried again; each pause is twice as long as the one before.
constexpr std::chrono::milliseconds kFirstPause{5};
constexpr std::chrono::milliseconds kLongestPause{200};

}  // namespace

Dialer::Dialer(asio::io_context* io, Options options, Done done)
    : options_(std::move(options)),
      done_(std::move(done)),
      socket_(*io),
      resolver_(*io),
      deadline_(*io),
      pause_(*io),
      next_pause_(kFirstPause) {}

void Dialer::Start() {
  deadline_.expires_after(options_.timeout);
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || !self->done_) return;
    const std::string address =
        self->options_.addresses.empty()
            ? "no address"
            : self->options_
                  .addresses[std::min(self->address_, self->options_.addresses.size() - 1)];
    self->Finish(absl::UnavailableError(fmt::format(
        "{}, for {} ms", self->error_.empty() ? address + ": it does not answer" : self->error_,
        self->options_.timeout.count())));
  });
  TryAddress(0);
}

void Dialer::Cancel() {
  done_ = nullptr;
  ++try_;
  error_code ignored;
  socket_.close(ignored);
  resolver_.cancel();
  deadline_.cancel();
  pause_.cancel();
  if (stream_ != nullptr) stream_->Close();
}

void Dialer::Finish(absl::StatusOr<Dialed> result) {
  const Done done = std::move(done_);
  const auto self = shared_from_this();
  if (result.ok()) stream_ = nullptr;
  Cancel();
  done(std::move(result));
}

template <typename Then>
net::ByteStream::Handler Dialer::Guarded(Then then) {
  return [self = shared_from_this(), then, which = try_](const error_code& error, size_t) {
    if (!self->done_ || self->try_ != which) return;
    if (!error) return then(self.get());
    const std::string failure(self->stream_->failure());
    self->NextAddress(failure.empty() ? error.message() : failure);
  };
}

void Dialer::TryAddress(size_t index) {
  if (index >= options_.addresses.size()) {
    address_ = 0;
    pause_.expires_after(next_pause_);
    next_pause_ = std::min(2 * next_pause_, kLongestPause);
    return pause_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->done_) self->TryAddress(0);
    });
  }
  address_ = index;
  const std::string& address = options_.addresses[index];
  if (net::IsUnixAddress(address)) {
    const auto endpoint = net::UnixEndpoint(address);
    return endpoint ? TryEndpoints({*endpoint}, 0) : NextAddress("there is no such path here");
  }
  const absl::StatusOr<HostPort> place = ParseHostPort(address);
  if (!place.ok()) return NextAddress(Message(place.status()));
  error_code error;
  const asio::ip::address number = asio::ip::make_address(place->host, error);
  if (!error) return TryEndpoints({asio::ip::tcp::endpoint(number, place->port)}, 0);
  resolver_.async_resolve(place->host, std::to_string(place->port),
                          [self = shared_from_this()](error_code failed, const auto& results) {
                            if (!self->done_) return;
                            if (failed) return self->NextAddress(failed.message());
                            std::vector<Endpoint> endpoints;
                            for (const auto& result : results) {
                              endpoints.emplace_back(result.endpoint());
                            }
                            self->TryEndpoints(std::move(endpoints), 0);
                          });
}

void Dialer::NextAddress(std::string_view why) {
  ++try_;
  error_ = fmt::format("{}: {}", options_.addresses[address_], why);
  error_code ignored;
  socket_.close(ignored);
  if (stream_ != nullptr) stream_->Close();
  TryAddress(address_ + 1);
}

void Dialer::TryEndpoints(std::vector<Endpoint> endpoints, size_t next) {
  const Endpoint endpoint = endpoints[next];
  socket_.async_connect(endpoint, [self = shared_from_this(), endpoints = std::move(endpoints),
                                   next, which = try_](const error_code& error) mutable {
    if (!self->done_ || self->try_ != which) return;
    if (!error) return self->OnConnected();
    error_code ignored;
    self->socket_.close(ignored);
    if (next + 1 < endpoints.size()) return self->TryEndpoints(std::move(endpoints), next + 1);
    self->NextAddress(error.message());
  });
}

void Dialer::OnConnected() {
  error_code error;
  const Endpoint local = socket_.local_endpoint(error), remote = socket_.remote_endpoint(error);
  const bool same_machine = local.protocol().family() == AF_UNIX;
  // A connection to a port without a listener can connect to itself (simultaneous open).
  if (!same_machine && !error && local == remote) return NextAddress("nothing listens there");
  if (same_machine && !IsOfOurUser(socket_.native_handle())) {
    return NextAddress("a process of another user listens there");
  }
  checked_ = !same_machine && !options_.tls;
  wanted_ring_bytes_ = same_machine && shares_ ? WantedRingBytes(*options_.sharing) : 0;
  if (same_machine || !options_.tls) {
    auto plain = PlainStream(std::move(socket_));
    plain_ = plain.get();
    stream_ = std::move(plain);
    return SendHello();
  }
  auto tls =
      EncryptedStream(std::move(socket_), options_.tls().get(), net::TlsStream::Side::kClient);
  net::TlsStream* const raw = tls.get();
  stream_ = std::move(tls);
  raw->Handshake(Guarded([](Dialer* self) { self->SendHello(); }));
}

void Dialer::SendHello() {
  Hello hello = options_.hello;
  hello.checked = checked_;
  hello.ring_bytes_max = wanted_ring_bytes_;
  hello_ = EncodeFrame(FrameKind::kHello, EncodeMessage(hello));
  stream_->Write({asio::buffer(hello_)}, Guarded([](Dialer* /*self*/) {}));
  ReadReply();
}

void Dialer::ReadReply() {
  stream_->ReadOne(asio::buffer(header_bytes_), Guarded([](Dialer* self) {
                     const auto header = DecodeFrameHeader(self->header_bytes_);
                     if (!header.ok()) return self->NextAddress(Message(header.status()));
                     if (header->kind != FrameKind::kHelloReply) {
                       return self->NextAddress("it did not answer the hello");
                     }
                     self->reply_.resize(header->payload_bytes);
                     if (self->reply_.empty()) return self->OnReply({});
                     self->ReadReplyMessage();
                   }));
}

void Dialer::ReadReplyMessage() {
  stream_->ReadOne(asio::buffer(reply_),
                   Guarded([](Dialer* self) { self->OnReply(self->reply_); }));
}

void Dialer::OnReply(std::string_view message) {
  const absl::StatusOr<HelloReply> reply = DecodeHelloReplyMessage(message);
  if (!reply.ok()) return NextAddress(Message(reply.status()));
  const std::string& address = options_.addresses[address_];
  if (reply->refused.empty()) {
    if (reply->ring_bytes > wanted_ring_bytes_) {
      return NextAddress(fmt::format("it shares rings of {} bytes, asked for were {}",
                                     reply->ring_bytes, wanted_ring_bytes_));
    }
    if (reply->ring_bytes > 0) return AwaitRings(reply->ring_bytes);
    return Finish(Dialed{std::move(stream_), address, checked_});
  }
  if (reply->again) return NextAddress(reply->refused);
  Finish(absl::UnavailableError(fmt::format("{}: {}", address, reply->refused)));
}

void Dialer::AwaitRings(uint32_t ring_bytes) {
  plain_->socket().async_wait(net::Socket::wait_read, [self = shared_from_this(), ring_bytes,
                                                       which = try_](const error_code& error) {
    if (!self->done_ || self->try_ != which) return;
    const absl::Status status =
        error ? absl::AbortedError(error.message()) : self->EnterRings(ring_bytes);
    if (absl::IsUnavailable(status)) return self->AwaitRings(ring_bytes);
    if (!status.ok()) return self->TryWithoutRings();
    self->Finish(
        Dialed{std::move(self->stream_), self->options_.addresses[self->address_], self->checked_});
  });
}

absl::Status Dialer::EnterRings(uint32_t ring_bytes) {
  MUSTER_ASSIGN_OR_RETURN(OwnedFd received,
                          net::ReceiveDescriptor(plain_->socket().native_handle()));
  MUSTER_ASSIGN_OR_RETURN(auto stream, OpenedRings(&plain_->socket(), std::move(received),
                                                   ring_bytes, *options_.sharing));
  stream_ = std::move(stream);
  return absl::OkStatus();
}

void Dialer::TryWithoutRings() {
  shares_ = false;
  ++try_;
  stream_->Close();
  TryAddress(address_);
}

}  // namespace muster::collectives::internal
