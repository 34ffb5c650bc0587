#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/address.h"
#include "net/byte_stream.h"

/// Addresses at which processes of a job listen: "unix:/path" or "host:port".
namespace muster::net {

/// The longest path of a UNIX socket that is used.
inline constexpr size_t kUnixPathMax = 100;

/// True for "unix:/path".
bool IsUnixAddress(std::string_view address);

/// The endpoint of "unix:/path". None if there is no such path here, because the server runs on
/// another machine or in another container. Requires: IsUnixAddress(address).
std::optional<boost::asio::generic::stream_protocol::endpoint> UnixEndpoint(
    std::string_view address);

/// Binds and listens at `path`, which has at most kUnixPathMax bytes, and returns the address
/// "unix:/path". The socket has mode 0600 and replaces an old one. Errors name the address.
absl::StatusOr<std::string> ListenUnix(const std::string& path,
                                       boost::asio::local::stream_protocol::acceptor* acceptor);

/// Where TCP listens: `host` is numeric, and `advertise` is what other processes are told.
struct TcpPlace {
  std::string host;
  std::string advertise;
  PortRange ports;
};
/// Binds and listens at the first free port, and returns "advertise:port". Errors name the place.
absl::StatusOr<std::string> ListenTcp(const TcpPlace& place,
                                      boost::asio::ip::tcp::acceptor* acceptor);

/// The settings of a connected socket.
struct SocketSettings {
  /// The requested size of a UNIX socket's send buffer. A TCP socket finds its own size.
  int unix_buffer_bytes = 4 << 20;
  /// If true, the kernel gives up a TCP peer that leaves its window closed for about 20 s. If
  /// false, the window may be closed for any time, and only a peer that has vanished is given up.
  bool limits_closed_window = true;
};
/// Applies the settings. It also sets close-on-exec, which Asio does not.
void Prepare(Socket* socket, const SocketSettings& settings);
/// True for a UNIX socket.
bool IsUnix(const Socket& socket);

}  // namespace muster::net
