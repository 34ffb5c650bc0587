#include "net/endpoints.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <filesystem>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

constexpr std::string_view kUnix = "unix:";

absl::Status ListenError(const std::string& address, const error_code& error) {
  return absl::UnavailableError(fmt::format("cannot listen on {}: {}", address, error.message()));
}

}  // namespace

bool IsUnixAddress(std::string_view address) {
  return address.starts_with(kUnix);
}

std::optional<asio::generic::stream_protocol::endpoint> UnixEndpoint(std::string_view address) {
  const std::string path(address.substr(kUnix.size()));
  std::error_code ignored;
  if (path.size() > kUnixPathMax || !std::filesystem::exists(path, ignored)) return std::nullopt;
  return stream_protocol::endpoint(path);
}

absl::StatusOr<std::string> ListenUnix(const std::string& path,
                                       stream_protocol::acceptor* acceptor) {
  const std::string address = std::string(kUnix) + path;
  ::unlink(path.c_str());
  error_code error;
  acceptor->open(stream_protocol(), error);
  if (!error) SetCloseOnExec(acceptor->native_handle(), true);
  if (!error) acceptor->bind(stream_protocol::endpoint(path), error);
  if (error) return ListenError(address, error);
  // No peer can connect before listen(), so none can connect before the mode is set.
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot set the mode of {}", path));
  }
  acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return ListenError(address, error);
  return address;
}

absl::StatusOr<std::string> ListenTcp(const TcpPlace& place, tcp::acceptor* acceptor) {
  error_code error;
  const asio::ip::address host = asio::ip::make_address(place.host, error);
  if (error) return ListenError(place.host, error);
  // A later incarnation of the server must be able to take a fixed port at once. A free port is
  // chosen by the kernel, and nobody waits for it.
  const bool fixed = place.ports.first != 0;
  for (uint32_t port = place.ports.first; port <= place.ports.last; ++port) {
    const tcp::endpoint endpoint(host, static_cast<uint16_t>(port));
    acceptor->open(endpoint.protocol(), error);
    if (!error) SetCloseOnExec(acceptor->native_handle(), true);
    if (!error && fixed) acceptor->set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor->bind(endpoint, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (!error) return JoinHostPort(place.advertise, acceptor->local_endpoint().port());
    error_code ignored;
    acceptor->close(ignored);
    if (error != asio::error::address_in_use) break;
  }
  return ListenError(
      fixed ? fmt::format("{}, ports {}-{}", place.host, place.ports.first, place.ports.last)
            : JoinHostPort(place.host, 0),
      error);
}

void Prepare(Socket* socket, const SocketSettings& settings) {
  SetCloseOnExec(socket->native_handle(), true);
  error_code ignored;
  if (IsUnix(*socket)) {
    socket->set_option(asio::socket_base::send_buffer_size(settings.unix_buffer_bytes), ignored);
    return;
  }
  socket->set_option(tcp::no_delay(true), ignored);
  DetectVanishedPeer(socket->native_handle());
  if (settings.limits_closed_window) return;
  const int unlimited = 0;
  ::setsockopt(socket->native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unlimited,
               sizeof(unlimited));
}

bool IsUnix(const Socket& socket) {
  error_code error;
  const auto local = socket.local_endpoint(error);
  return !error && local.protocol().family() == AF_UNIX;
}

}  // namespace muster::net
