#pragma once

#include <cstdint>

namespace muster {

/// a / b, rounded up. Requires b > 0.
constexpr uint64_t DivideUp(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0);
}

/// Where part `i` of `parts` equal parts of [0, whole) begins: they differ by one at most. The last
/// ends where part `parts` would begin, at `whole`. Requires i <= parts, parts > 0.
constexpr uint64_t BeginOfPart(uint64_t i, uint64_t parts, uint64_t whole) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(i) * whole / parts);
}

}  // namespace muster
