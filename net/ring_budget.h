#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "net/ring_memory.h"

namespace muster::net {

/// The memory that one thread shares with its peers. Once a page of a ring was written, it stays in
/// memory, so all rings together have a limit. Every peer gets at most an eighth of the rest. So
/// the first peers get large rings. The last ones continue to use their sockets, which are slower
/// but need no memory. Belongs to that thread.
class RingBudget {
 public:
  /// A smaller ring costs more than it gains.
  static constexpr size_t kRingBytesMin = 256u << 10;
  static constexpr size_t kRingBytesMax = 4u << 20;
  static_assert(kRingBytesMin >= RingMemory::kRingBytesMin &&
                kRingBytesMax <= RingMemory::kRingBytesMax);

  explicit RingBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  /// The size of each of the two rings of a new peer that wants at most `wanted`; 0: none.
  size_t Take(size_t wanted) {
    const size_t ring =
        std::bit_floor(std::min({wanted, kRingBytesMax, (bytes_max_ - bytes_) / 8}));
    if (ring < kRingBytesMin) return 0;
    bytes_ += 2 * ring;
    return ring;
  }
  /// Takes back the rings of a peer that is gone.
  void Give(size_t ring) {
    MUSTER_CHECK(2 * ring <= bytes_);
    bytes_ -= 2 * ring;
  }

  size_t bytes() const { return bytes_; }
  size_t bytes_max() const { return bytes_max_; }

 private:
  const size_t bytes_max_;
  size_t bytes_ = 0;
};

}  // namespace muster::net
