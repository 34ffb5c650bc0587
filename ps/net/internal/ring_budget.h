#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "net/ring_memory.h"

namespace muster::ps {

/// How much memory a lane shares with its peers. Pages of a ring stay when they have been written
/// once, so all rings together have a limit, and every peer gets at most an eighth of what is left
/// of it: the first ones have large rings, the last ones stay with their sockets, which are slower
/// and take no memory. Belongs to the lane's thread.
class RingBudget {
 public:
  /// Below this a ring brings less than it costs.
  static constexpr size_t kRingBytesMin = 256u << 10;
  static constexpr size_t kRingBytesMax = 4u << 20;
  static_assert(kRingBytesMin >= net::RingMemory::kRingBytesMin &&
                kRingBytesMax <= net::RingMemory::kRingBytesMax);

  explicit RingBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  /// The size of each of a new peer's two rings, which wants at most `wanted`; 0: none.
  size_t Take(size_t wanted) {
    const size_t ring =
        std::bit_floor(std::min({wanted, kRingBytesMax, (bytes_max_ - bytes_) / 8}));
    if (ring < kRingBytesMin) return 0;
    bytes_ += 2 * ring;
    return ring;
  }
  /// Of a peer that is gone.
  void Give(size_t ring) {
    MUSTER_CHECK(2 * ring <= bytes_);
    bytes_ -= 2 * ring;
  }

  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_max_;
  size_t bytes_ = 0;
};

}  // namespace muster::ps
