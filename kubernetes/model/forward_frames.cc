#include "kubernetes/model/forward_frames.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::kubernetes {

absl::StatusOr<ForwardFrame> ForwardFrames::Read(std::string_view message) {
  if (message.empty()) return ForwardFrame{};
  const auto channel = static_cast<unsigned char>(message.front());
  if (channel >= port_bytes_left_.size()) {
    return absl::InvalidArgumentError(
        fmt::format("a port-forward of one port has no channel {}", channel));
  }
  message.remove_prefix(1);
  size_t& left = port_bytes_left_[channel];
  const size_t of_port = std::min(left, message.size());
  left -= of_port;
  message.remove_prefix(of_port);
  if (message.empty()) return ForwardFrame{};
  return ForwardFrame{.kind = channel == 0 ? ForwardFrame::Kind::kData : ForwardFrame::Kind::kError,
                      .bytes = message};
}

std::string DataFrame(std::string_view bytes) {
  std::string message(1, '\0');
  message += bytes;
  return message;
}

}  // namespace muster::kubernetes
