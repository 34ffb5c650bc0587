#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::kubernetes {

/// The subprotocol of a port-forward over a WebSocket.
inline constexpr char kForwardProtocol[] = "v4.channel.k8s.io";

/// What a message of a port-forward carries.
struct ForwardFrame {
  enum class Kind {
    /// The first bytes of a channel, which name the port.
    kNothing,
    /// Bytes from the port.
    kData,
    /// Why the port cannot be reached.
    kError,
  };
  Kind kind = Kind::kNothing;
  /// A part of the message.
  std::string_view bytes;
};

/// Reads the server's messages of a port-forward of one port: a byte that names the channel (0:
/// data, 1: errors), then bytes of it. Each channel begins with the port in two bytes. Pure; not
/// thread-safe.
class ForwardFrames {
 public:
  /// kInvalidArgument: no such channel.
  absl::StatusOr<ForwardFrame> Read(std::string_view message);

 private:
  std::array<size_t, 2> port_bytes_left_{2, 2};
};

/// Our message with `bytes` for the port.
std::string DataFrame(std::string_view bytes);

}  // namespace muster::kubernetes
