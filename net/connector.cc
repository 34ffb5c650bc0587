#include "net/connector.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "base/backoff.h"
#include "base/descriptors.h"
#include "base/failpoint.h"
#include "base/status.h"
#include "net/tls_stream.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Before the addresses are tried again. Few processes connect to one, so it is not spread.
constexpr BackoffLimits kPauses{.first = std::chrono::milliseconds(5),
                                .longest = std::chrono::milliseconds(200)};
constexpr char kSilent[] = "it does not answer";

absl::StatusOr<RingMemory> OpenRings(OwnedFd received, size_t ring_bytes) {
  MUSTER_FAILPOINT_OR_RETURN("rings.before-open");
  return RingMemory::Open(std::move(received), ring_bytes);
}

}  // namespace

Connector::Connector(asio::any_io_executor executor, Options options, Done done)
    : options_(std::move(options)),
      done_(std::move(done)),
      socket_(executor),
      resolver_(executor),
      deadline_(executor),
      pause_(executor) {}

template <typename Then>
auto Connector::Guarded(Then then) {
  return [self = shared_from_this(), then, which = try_](const error_code& error, size_t = 0) {
    if (!self->done_ || self->try_ != which) return;
    if (!error) return then(self.get());
    const std::string failure(self->stream_ == nullptr ? "" : self->stream_->failure());
    self->Fail(failure.empty() ? error.message() : failure);
  };
}

void Connector::Start() {
  if (options_.timeout.count() > 0) {
    deadline_.expires_after(options_.timeout);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->done_) self->OnTimeout();
    });
  }
  Try(0);
}

void Connector::OnTimeout() {
  if (why_.empty()) why_ = kSilent;
  if (error_.empty()) {
    error_ = fmt::format("{}: {}",
                         options_.addresses.empty() ? "no address" : options_.addresses[address_],
                         kSilent);
  }
  Finish(absl::UnavailableError(fmt::format("{}, for {} ms", error_, options_.timeout.count())));
}

void Connector::Cancel() {
  done_ = nullptr;
  deadline_.cancel();
  Drop();
}

void Connector::Drop() {
  ++try_;
  error_code ignored;
  socket_.close(ignored);
  resolver_.cancel();
  pause_.cancel();
  if (stream_ != nullptr) stream_->Close();
}

void Connector::Finish(absl::StatusOr<Made> result) {
  const auto self = shared_from_this();
  const Done done = std::move(done_);
  Cancel();
  done(std::move(result));
}

void Connector::Try(size_t index) {
  stream_ = nullptr;
  plain_ = nullptr;
  if (index >= options_.addresses.size()) return OnNoMore();
  address_ = index;
  const std::string& address = options_.addresses[index];
  if (IsUnixAddress(address)) {
    const auto endpoint = UnixEndpoint(address);
    return endpoint ? TryEndpoints({*endpoint}, 0) : Skip("there is no such path here");
  }
  const absl::StatusOr<HostPort> place = ParseHostPort(address);
  if (!place.ok()) return Skip(Message(place.status()));
  error_code error;
  const asio::ip::address number = asio::ip::make_address(place->host, error);
  if (!error) return TryEndpoints({asio::ip::tcp::endpoint(number, place->port)}, 0);
  // The name is resolved for each connection, because a process may have moved.
  resolver_.async_resolve(
      place->host, std::to_string(place->port),
      [self = shared_from_this(), which = try_](const error_code& failed, const auto& results) {
        if (!self->done_ || self->try_ != which) return;
        if (failed) return self->Fail(failed.message());
        std::vector<Endpoint> endpoints;
        for (const auto& one : results) endpoints.emplace_back(one.endpoint());
        self->TryEndpoints(std::move(endpoints), 0);
      });
}

void Connector::Skip(std::string_view why) {
  if (error_.empty()) error_ = fmt::format("{}: {}", options_.addresses[address_], why);
  Try(address_ + 1);
}

void Connector::Fail(std::string_view why) {
  why_ = why;
  error_ = fmt::format("{}: {}", options_.addresses[address_], why);
  Drop();
  if (connected() && options_.tries == Tries::kOnce) return Finish(absl::UnavailableError(error_));
  Try(address_ + 1);
}

void Connector::OnNoMore() {
  if (options_.tries == Tries::kOnce) {
    if (why_.empty()) {  // all were skipped
      error_ = fmt::format("it has no address that can be used here{}{}",
                           error_.empty() ? "" : ": ", error_);
    }
    return Finish(absl::UnavailableError(error_));
  }
  pause_.expires_after(PauseAfter(++rounds_, kPauses));
  pause_.async_wait([self = shared_from_this(), which = try_](const error_code& error) {
    if (!error && self->done_ && self->try_ == which) self->Try(0);
  });
}

void Connector::TryEndpoints(std::vector<Endpoint> endpoints, size_t next) {
  const Endpoint endpoint = endpoints[next];
  error_code error;
  socket_.open(endpoint.protocol(), error);
  if (error) return Fail(error.message());
  SetCloseOnExec(socket_.native_handle(), true);
  LimitConnect(endpoints.size() - next);
  socket_.async_connect(endpoint, [self = shared_from_this(), endpoints = std::move(endpoints),
                                   next, which = try_](const error_code& failed) mutable {
    if (!self->done_ || self->try_ != which) return;
    self->pause_.cancel();
    ++self->try_;  // the limit may have passed just now
    if (!failed && self->socket_.is_open()) return self->OnConnected();
    const bool silent = !self->socket_.is_open();
    error_code ignored;
    self->socket_.close(ignored);
    if (next + 1 < endpoints.size()) return self->TryEndpoints(std::move(endpoints), next + 1);
    self->Fail(silent ? kSilent : failed.message());
  });
}

void Connector::LimitConnect(size_t endpoints_left) {
  const size_t left = endpoints_left + options_.addresses.size() - 1 - address_;
  if (left == 1 || options_.timeout.count() == 0) return;
  const auto now = std::chrono::steady_clock::now();
  pause_.expires_after((deadline_.expiry() - now) / left);
  pause_.async_wait([self = shared_from_this(), which = try_](const error_code& error) {
    if (error || !self->done_ || self->try_ != which) return;
    error_code ignored;
    self->socket_.close(ignored);
  });
}

void Connector::OnConnected() {
  error_code error;
  const Endpoint local = socket_.local_endpoint(error), remote = socket_.remote_endpoint(error);
  unix_ = IsUnix(socket_);
  // A connection to a port without a listener can connect to itself (simultaneous open).
  if (!unix_ && !error && local == remote) return Fail("nothing listens there");
  if (unix_ && !IsOfOurUser(socket_.native_handle())) {
    return Fail("a process of another user listens there");
  }
  Prepare(&socket_, options_.socket);
  if (unix_ || !options_.tls) {
    stream_ = std::make_unique<SocketStream>(std::move(socket_), options_.step_bytes);
    plain_ = static_cast<SocketStream*>(stream_.get());
    return Greet();
  }
  stream_ = std::make_unique<TlsStream>(std::move(socket_), options_.tls().get(),
                                        TlsStream::Side::kClient, options_.step_bytes,
                                        options_.tls_options);
  static_cast<TlsStream&>(*stream_).Handshake(Guarded([](Connector* self) { self->Greet(); }));
}

void Connector::Greet() {
  if (options_.greeting == nullptr) return FinishMade();
  hello_ = options_.greeting->Hello(unix_, unix_ && shares_ ? options_.ring_bytes : 0);
  stream_->Write({asio::buffer(hello_)}, Guarded([](Connector* self) { self->ReadAnswer(); }));
}

void Connector::ReadAnswer() {
  stream_->ReadOne(asio::buffer(header_), Guarded([](Connector* self) {
                     const auto bytes = self->options_.greeting->OnHeader(self->header_);
                     if (!bytes.ok()) return self->Fail(Message(bytes.status()));
                     self->body_.resize(*bytes);
                     if (self->body_.empty()) return self->OnAnswer();
                     self->stream_->ReadOne(
                         asio::buffer(self->body_),
                         self->Guarded([](Connector* whole) { whole->OnAnswer(); }));
                   }));
}

void Connector::OnAnswer() {
  const absl::StatusOr<uint32_t> shared = options_.greeting->OnAnswer(body_);
  if (absl::IsPermissionDenied(shared.status())) {
    return Finish(absl::UnavailableError(
        fmt::format("{}: {}", options_.addresses[address_], Message(shared.status()))));
  }
  if (!shared.ok()) return Fail(Message(shared.status()));
  const uint32_t asked = unix_ && shares_ ? options_.ring_bytes : 0;
  if (*shared > asked) {
    return Fail(fmt::format("it shares rings of {} bytes, asked for were {}", *shared, asked));
  }
  *shared == 0 ? FinishMade() : AwaitRings(*shared);
}

void Connector::AwaitRings(uint32_t ring_bytes) {
  plain_->socket().async_wait(Socket::wait_read, Guarded([ring_bytes](Connector* self) {
                                const absl::Status entered = self->EnterRings(ring_bytes);
                                if (absl::IsUnavailable(entered))
                                  return self->AwaitRings(ring_bytes);
                                if (entered.ok()) return self->FinishMade();
                                self->options_.greeting->OnUselessRings();
                                if (self->options_.tries == Tries::kOnce)
                                  return self->Fail(Message(entered));
                                self->shares_ = false;
                                self->Drop();
                                self->Try(self->address_);
                              }));
}

absl::Status Connector::EnterRings(uint32_t ring_bytes) {
  MUSTER_ASSIGN_OR_RETURN(OwnedFd received, ReceiveDescriptor(plain_->socket().native_handle()));
  absl::StatusOr<RingMemory> memory = OpenRings(std::move(received), ring_bytes);
  if (!memory.ok()) {
    return absl::FailedPreconditionError(
        fmt::format("its shared memory is of no use: {}", Message(memory.status())));
  }
  Socket socket = std::move(std::exchange(plain_, nullptr)->socket());
  stream_ = std::make_unique<RingStream>(std::move(socket), *std::move(memory),
                                         RingStream::Side::kOpenedIt, options_.spin);
  MUSTER_FAILPOINT("rings.after-open");
  return absl::OkStatus();
}

}  // namespace muster::net
