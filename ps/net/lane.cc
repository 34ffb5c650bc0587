#include "ps/net/lane.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "net/endpoints.h"
#include "ps/net/internal/peer_connection.h"

namespace muster::ps {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

/// The pause after accept() has failed, for example because no file descriptors are left.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::string OriginOf(const stream_protocol::socket& /*socket*/) {
  return "UNIX socket";
}
std::string OriginOf(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? "TCP" : JoinHostPort(peer.address().to_string(), peer.port());
}

/// Connections of one kind.
struct Quota {
  const char* name;
  uint32_t max;
  uint32_t open = 0;
};

}  // namespace

struct Lane::State {
  State(LaneOptions given, FrameHandler* handler)
      : options(std::move(given)),
        context{handler,       &options.limits,
                options.clock, [this](AlignedBuffer buffer) { Discard(std::move(buffer)); },
                &spares,       &rings},
        unix_quota{"UNIX", options.limits.unix_connections_max},
        tcp_quota{"TCP", options.limits.tcp_connections_max +
                             (HasUnix() ? 0 : options.limits.unix_connections_max)} {
    MUSTER_CHECK(options.clock != nullptr);
  }

  bool HasUnix() const {
    return !options.unix_path.empty() && options.unix_path.size() <= net::kUnixPathMax;
  }
  template <typename Acceptor>
  void Accept(Acceptor* acceptor, Quota* quota);
  void Admit(net::Socket socket, std::string origin, Quota* quota);
  void Refuse(net::Socket socket, const Quota& quota);
  /// Ends the oldest handshake if there are too many handshakes, or if the quota is full and a new
  /// connection needs a place.
  void MakePlace(const Quota& quota);
  void EndOverdue();
  /// Ends overdue connections regularly.
  void Watch();
  void RunAfter(std::chrono::nanoseconds delay, std::function<void()> task);
  void Discard(AlignedBuffer buffer);
  void ReleaseSome();
  void CloseAll();

  const LaneOptions options;
  const ConnectionContext context;
  // Connections use it while they close, so it must outlive them. While it is not empty,
  // ReleaseSome is posted.
  std::deque<AlignedBuffer> discarded;
  SpareBuffers spares{options.limits.spare_bytes_max};
  net::RingBudget rings{options.limits.ring_bytes_max};
  bool ended = false;
  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
      asio::make_work_guard(io)};
  stream_protocol::acceptor unix_acceptor{io};
  tcp::acceptor tcp_acceptor{io};
  asio::steady_timer watch{io};
  bool unix_bound = false;
  // Only the lane's thread uses these.
  std::set<std::shared_ptr<asio::steady_timer>> timers;
  Quota unix_quota, tcp_quota;
  std::unordered_map<PeerConnection*, std::shared_ptr<PeerConnection>> connections;
  std::deque<std::weak_ptr<PeerConnection>>
      handshakes;  // those in progress, and some that have ended
  std::thread thread;
};

Lane::Lane(LaneOptions options, FrameHandler* handler)
    : state_(std::make_unique<State>(std::move(options), handler)) {}

Lane::~Lane() {
  Stop();
}

absl::StatusOr<std::vector<std::string>> Lane::Listen() {
  std::vector<std::string> addresses;
  const std::string& path = state_->options.unix_path;
  if (path.size() > net::kUnixPathMax) {
    Log(LogLevel::kWarning,
        "lane {}: the path {} is longer than {} bytes, so the lane serves only TCP",
        state_->options.name, path, net::kUnixPathMax);
  }
  if (state_->HasUnix()) {
    state_->unix_bound = true;
    MUSTER_ASSIGN_OR_RETURN(std::string address, net::ListenUnix(path, &state_->unix_acceptor));
    addresses.push_back(std::move(address));
  }
  const LaneOptions& options = state_->options;
  MUSTER_ASSIGN_OR_RETURN(
      std::string address,
      net::ListenTcp({options.host, options.advertise, options.ports}, &state_->tcp_acceptor));
  addresses.push_back(std::move(address));
  return addresses;
}

void Lane::Start() {
  MUSTER_CHECK(!state_->thread.joinable());
  if (state_->unix_acceptor.is_open()) {
    state_->Accept(&state_->unix_acceptor, &state_->unix_quota);
  }
  state_->Accept(&state_->tcp_acceptor, &state_->tcp_quota);
  state_->Watch();
  state_->thread = std::thread([state = state_.get()] {
    pthread_setname_np(pthread_self(), state->options.name.substr(0, 15).c_str());
    state->io.run();
  });
}

template <typename Acceptor>
void Lane::State::Accept(Acceptor* acceptor, Quota* quota) {
  acceptor->async_accept([this, acceptor, quota](const error_code& error, auto socket) {
    if (!acceptor->is_open()) return;
    if (!error) {
      std::string origin = OriginOf(socket);
      Admit(std::move(socket), std::move(origin), quota);
      return Accept(acceptor, quota);
    }
    Log(LogLevel::kWarning, "lane {}: cannot accept a connection: {}", options.name,
        error.message());
    auto timer = std::make_shared<asio::steady_timer>(io, kAcceptPause);
    timer->async_wait([this, acceptor, quota, timer](const error_code& /*due*/) {
      if (acceptor->is_open()) Accept(acceptor, quota);
    });
  });
}

void Lane::State::Admit(net::Socket socket, std::string origin, Quota* quota) {
  const bool encrypted = quota == &tcp_quota && options.tls;
  if (encrypted) MakePlace(*quota);
  if (quota->open >= quota->max) {
    // A peer that has not finished its TLS handshake could not read the error.
    return encrypted ? void() : Refuse(std::move(socket), *quota);
  }
  // A reply that fits into a UNIX socket's buffer is written in one call.
  net::Prepare(&socket, {.unix_buffer_bytes = options.limits.unix_buffer_bytes});
  auto connection = std::make_shared<PeerConnection>(std::move(socket), std::move(origin),
                                                     encrypted ? options.tls() : nullptr, &context,
                                                     [this, quota](PeerConnection* closed) {
                                                       MUSTER_CHECK(quota->open > 0);
                                                       --quota->open;
                                                       connections.erase(closed);
                                                     });
  ++quota->open;
  if (encrypted) handshakes.push_back(connection);
  connections.emplace(connection.get(), connection);
  connection->Start();
}

void Lane::State::MakePlace(const Quota& quota) {
  std::erase_if(handshakes, [](const std::weak_ptr<PeerConnection>& one) {
    const auto connection = one.lock();
    return connection == nullptr || connection->handshake_done();
  });
  if (handshakes.empty()) return;
  if (handshakes.size() < options.limits.handshakes_max && quota.open < quota.max) return;
  if (const auto oldest = handshakes.front().lock()) {
    oldest->GiveUpHandshake("it did not finish its TLS handshake, and others wait for its place");
  }
}

void Lane::State::Refuse(net::Socket socket, const Quota& quota) {
  const std::string directory =
      wire::EncodeError(fmt::format("lane {} has {} {} connections, which is its limit; close some",
                                    options.name, quota.open, quota.name));
  wire::Header header;
  header.kind = wire::Kind::kError;
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  std::array<std::byte, wire::kHeaderBytes> bytes;
  wire::EncodeHeader(header, bytes);
  // The send buffer of a new socket always has room for this.
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(std::array{asio::buffer(std::as_const(bytes)), asio::buffer(directory)},
                    ignored);
}

void Lane::State::EndOverdue() {
  const TimePoint now = options.clock->Now();
  std::vector<std::shared_ptr<PeerConnection>>
      open;  // a copy, because ending a connection removes it from the map
  open.reserve(connections.size());
  for (const auto& [unused, connection] : connections) open.push_back(connection);
  for (const auto& connection : open) connection->EndIfOverdue(now);
}

void Lane::State::Watch() {
  watch.expires_after(options.limits.hello_timeout / 4);
  watch.async_wait([this](const error_code& error) {
    if (error || !tcp_acceptor.is_open()) return;
    EndOverdue();
    Watch();
  });
}

void Lane::EndOverdue() {
  asio::post(state_->io, [state = state_.get()] { state->EndOverdue(); });
}

void Lane::Post(std::function<void()> task) {
  asio::post(state_->io, std::move(task));
}

void Lane::State::RunAfter(std::chrono::nanoseconds delay, std::function<void()> task) {
  if (!tcp_acceptor.is_open()) return;
  auto timer = std::make_shared<asio::steady_timer>(io, delay);
  timers.insert(timer);
  timer->async_wait([this, timer, task = std::move(task)](const error_code& error) {
    timers.erase(timer);
    if (!error) task();
  });
}

void Lane::PostAfter(std::chrono::nanoseconds delay, std::function<void()> task) {
  asio::post(state_->io, [state = state_.get(), delay, task = std::move(task)]() mutable {
    state->RunAfter(delay, std::move(task));
  });
}

void Lane::State::Discard(AlignedBuffer buffer) {
  if (ended) return;
  discarded.push_back(std::move(buffer));
  if (discarded.size() == 1) asio::post(io, [this] { ReleaseSome(); });
}

void Lane::State::ReleaseSome() {
  if (discarded.front().ReleaseSome(options.limits.slice_bytes)) discarded.pop_front();
  if (!discarded.empty()) asio::post(io, [this] { ReleaseSome(); });
}

void Lane::State::CloseAll() {
  error_code ignored;
  ended = true;
  unix_acceptor.close(ignored);
  tcp_acceptor.close(ignored);
  watch.cancel();
  for (const auto& timer : timers) timer->cancel();
  // Close() removes the connection from the map.
  for (auto open = std::exchange(connections, {}); auto& [unused, connection] : open) {
    connection->Close();
  }
  work.reset();
}

void Lane::Stop() {
  if (state_->thread.joinable()) {
    asio::post(state_->io, [state = state_.get()] { state->CloseAll(); });
    state_->thread.join();
  } else {
    state_->CloseAll();
  }
  if (std::exchange(state_->unix_bound, false)) ::unlink(state_->options.unix_path.c_str());
}

}  // namespace muster::ps
