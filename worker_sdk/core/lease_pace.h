#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace muster::sdk {

/// How many shards a worker holds besides those in its loops: as many as its loops take in a tenth
/// of a second. So short shards do not wait for the master, and long ones are not kept from other
/// workers. If the worker holds far more, it hands the rest back. A shard that was not begun costs
/// nothing when the worker dies: another worker gets it. Pure. Not thread-safe.
class LeasePace {
 public:
  /// How long the held shards last, in addition to the time of two exchanges.
  static constexpr std::chrono::milliseconds kAhead{100};
  /// Exchanges that take longer, because they wait for a slow disk, count as this long.
  static constexpr std::chrono::seconds kTripMax{2};
  /// The maximum, because every exchange lists all of them.
  static constexpr uint32_t kShardsMax = 4'096;

  /// `shards_min`: held even if the loops are slow; 0: no shard is ever held ahead of a loop.
  explicit LeasePace(uint32_t shards_min) : shards_min_(shards_min), goal_(shards_min) {}

  /// Shards to hold.
  uint32_t goal() const { return goal_; }
  /// A worker that holds more than this was faster before, and hands the rest back. It is a few
  /// more than twice the goal. So with a goal of 1 or 2, small differences in time are no reason to
  /// hand back.
  uint32_t most() const { return 2 * goal_ + 4; }
  /// A loop takes a shard.
  void Took() { ++taken_; }
  /// An exchange begins. The goal follows the shards taken since the last ones.
  void Exchanging(TimePoint now) {
    begun_ = now;
    const std::chrono::nanoseconds span = kAhead + 2 * trip_;
    const std::chrono::nanoseconds passed = now - since_;
    if (passed < span) {
      goal_ = Bounded(std::max<uint64_t>(goal_, taken_));
      return;
    }
    const double share = static_cast<double>(span.count()) / static_cast<double>(passed.count());
    goal_ = Bounded(static_cast<uint64_t>(static_cast<double>(taken_) * share));
    taken_ = 0;
    since_ = now;
  }
  /// Its answer has arrived.
  void Answered(TimePoint now) {
    trip_ = std::min<std::chrono::nanoseconds>(now - begun_, kTripMax);
  }

 private:
  uint32_t Bounded(uint64_t shards) const {
    if (shards_min_ == 0) return 0;
    return static_cast<uint32_t>(
        std::clamp<uint64_t>(shards, shards_min_, std::max(shards_min_, kShardsMax)));
  }

  const uint32_t shards_min_;
  uint32_t goal_;
  uint64_t taken_ = 0;  // since `since_`
  TimePoint since_{};
  TimePoint begun_{};
  std::chrono::nanoseconds trip_{0};
};

}  // namespace muster::sdk
