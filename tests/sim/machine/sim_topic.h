#pragma once

#include <array>
#include <cstdint>

#include "base/random.h"

namespace muster::sim {

/// A topic as its brokers have it: two partitions that grow to a known end, with offsets that are
/// no records (control records, aborted transactions, compaction) and a retention that deletes
/// records that are reported as COMMITTED. If it should strike earlier, it hides records and shows
/// them again, as if they were restored from elsewhere. So at the end, all of them must be in the
/// weights.
class SimTopic {
 public:
  static constexpr uint32_t kPartitions = 2;
  /// Of each partition, at the end.
  static constexpr uint64_t kOffsets = 17;

  /// A pure function: about one offset in four has no record.
  static bool IsRecord(uint32_t partition, uint64_t offset) {
    return HashWords(partition, offset, 0x746f706963) % 4 != 0;
  }

  /// Some more of one partition becomes readable.
  void Grow(Rng* rng);
  /// All of it does.
  void Finish() { ends_.fill(kOffsets); }
  /// Retention: offsets before this are gone.
  void Forget(uint32_t partition, uint64_t before);
  /// What a look is to take for the begin of a log of which retention has taken some of what is
  /// open. Nothing is forgotten of this partition any more.
  uint64_t Hide(uint32_t partition, Rng* rng);
  /// More will come.
  bool open() const;
  void set_reachable(bool reachable) { reachable_ = reachable; }
  /// The journal has where the job begins in it.
  void set_begun() { begun_ = true; }

  bool reachable() const { return reachable_; }
  bool begun() const { return begun_; }
  uint64_t begin(uint32_t partition) const { return begins_[partition]; }
  uint64_t stable_end(uint32_t partition) const { return ends_[partition]; }

 private:
  std::array<uint64_t, kPartitions> begins_{};
  std::array<uint64_t, kPartitions> ends_{};
  std::array<bool, kPartitions> hid_{};
  bool reachable_ = true;
  bool begun_ = false;
};

}  // namespace muster::sim
