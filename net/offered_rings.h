#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "net/ring_budget.h"
#include "net/ring_memory.h"

namespace muster::net {

/// The shared memory of one peer, from its creation until the peer gets it. When this object ends,
/// its part of the budget is free again. Belongs to the thread of the budget.
class OfferedRings {
 public:
  /// The budget must outlive it.
  explicit OfferedRings(RingBudget* budget) : budget_(budget) {}
  ~OfferedRings();
  OfferedRings(const OfferedRings&) = delete;
  OfferedRings& operator=(const OfferedRings&) = delete;

  /// Creates two rings of at most `wanted` bytes each, once. Returns their size; 0: there are none,
  /// and the peer continues to use its socket. `peer` is its name in the log.
  size_t Make(size_t wanted, std::string_view peer);
  /// True if they exist, but the peer does not have them yet.
  bool waiting() const { return memory_.has_value(); }
  /// Releases the memory, because the peer does not get it.
  void Drop() { memory_.reset(); }
  /// Sends the peer their descriptor over a UNIX socket. Requires waiting().
  absl::StatusOr<RingMemory> HandOver(int socket);

 private:
  RingBudget* const budget_;
  size_t bytes_ = 0;  // of the budget
  std::optional<RingMemory> memory_;
};

}  // namespace muster::net
