#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// A supervising process that an earlier scaler has started. Its socket was found.
struct FoundNode {
  std::string node;
  uint32_t start = 0;
  bool alive = false;  // a process listens at the socket
  friend bool operator==(const FoundNode&, const FoundNode&) = default;
};

}  // namespace muster
