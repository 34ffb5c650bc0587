#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// A supervising process that an earlier scaler started, as its socket shows it.
struct FoundNode {
  std::string node;
  uint32_t start = 0;
  bool alive = false;  // a process listens
  friend bool operator==(const FoundNode&, const FoundNode&) = default;
};

}  // namespace muster
