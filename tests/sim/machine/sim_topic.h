#pragma once

#include <array>
#include <cstdint>

#include "base/random.h"

namespace muster::sim {

/// A topic as its brokers have it: two partitions that grow to a known end, with offsets that are
/// no records (control records, aborted transactions, compaction) and a retention that takes what
/// is said to be COMMITTED.
class SimTopic {
 public:
  static constexpr uint32_t kPartitions = 2;
  /// Of each partition, at the end.
  static constexpr uint64_t kOffsets = 17;

  /// A pure function: about one offset in four is none.
  static bool IsRecord(uint32_t partition, uint64_t offset) {
    return HashWords(partition, offset, 0x746f706963) % 4 != 0;
  }

  /// Some more of one partition becomes readable.
  void Grow(Rng* rng);
  /// All of it does.
  void Finish() { ends_.fill(kOffsets); }
  /// Retention: offsets before this are gone.
  void Forget(uint32_t partition, uint64_t before);
  void set_reachable(bool reachable) { reachable_ = reachable; }

  bool reachable() const { return reachable_; }
  uint64_t begin(uint32_t partition) const { return begins_[partition]; }
  uint64_t stable_end(uint32_t partition) const { return ends_[partition]; }

 private:
  std::array<uint64_t, kPartitions> begins_{};
  std::array<uint64_t, kPartitions> ends_{};
  bool reachable_ = true;
};

}  // namespace muster::sim
