#pragma once

#include <array>
#include <cstdint>

namespace muster::scaler::rest {

/// What the REST interface has counted since it began.
struct RestStats {
  /// The number of answers by the first digit of their status, [2] to [5].
  std::array<uint64_t, 6> answers = {};
  uint64_t connections = 0;  // now
  uint64_t connections_refused = 0;
  uint64_t streams = 0;  // now
  /// Streams that were dropped because the client did not read.
  uint64_t streams_dropped = 0;
};

}  // namespace muster::scaler::rest
