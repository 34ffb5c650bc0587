#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace muster::sdk {

/// How many shards a worker holds besides those in its loops: what its loops take in a second and a
/// half, so that they work while the master restarts. If shards are so short that these would be
/// very many, it is what they take in a tenth of a second, so that they do not wait for the master.
/// The worker hands back what is far more than that, so that it does not keep long shards from
/// others. A shard that has not begun costs nothing when the worker dies: the next worker that asks
/// gets it. Pure. Not thread-safe.
class LeasePace {
 public:
  /// How long what is held lasts at least, besides the time that two exchanges take.
  static constexpr std::chrono::milliseconds kAhead{100};
  /// How long a restart of the master takes, until workers have shards of the new one.
  static constexpr std::chrono::milliseconds kRestart{1'500};
  /// The most shards that are held for a restart, because every exchange lists them all.
  static constexpr uint32_t kRestartShardsMax = 256;
  /// An exchange that waits for a slow disk takes longer. It counts as this long.
  static constexpr std::chrono::seconds kTripMax{2};
  /// Every exchange lists them all.
  static constexpr uint32_t kShardsMax = 4'096;

  /// `shards_min`: how many are held even if the loops are slow. If it is 0, none is held ahead of
  /// a loop.
  explicit LeasePace(uint32_t shards_min) : shards_min_(shards_min), goal_(shards_min) {}

  /// Shards to hold.
  uint32_t goal() const { return goal_; }
  /// A worker that holds more than this was faster before, and hands the rest back. It is a few
  /// more than twice the goal. So with a goal of 1 or 2, small differences in time are no reason to
  /// hand back.
  uint32_t most() const { return 2 * goal_ + 4; }
  /// A loop takes a shard.
  void Took() {
    ahead_.Took();
    restart_.Took();
  }
  /// An exchange begins: the goal follows what was taken since the last ones.
  void Exchanging(TimePoint now) {
    begun_ = now;
    ahead_.Look(now, kAhead + 2 * trip_);
    restart_.Look(now, kRestart);
    goal_ =
        Bounded(std::max(ahead_.taken(), std::min<uint64_t>(restart_.taken(), kRestartShardsMax)));
  }
  /// Its answer is there.
  void Answered(TimePoint now) {
    trip_ = std::min<std::chrono::nanoseconds>(now - begun_, kTripMax);
  }

 private:
  /// How many shards the loops take in a span of time. It rises at once, and falls within two
  /// spans.
  class Meter {
   public:
    void Took() { ++counted_; }
    void Look(TimePoint now, std::chrono::nanoseconds span) {
      const std::chrono::nanoseconds passed = now - since_;
      if (passed < span) {
        taken_ = std::max(taken_, counted_);
        return;
      }
      const double share = static_cast<double>(span.count()) / static_cast<double>(passed.count());
      taken_ = static_cast<uint64_t>(static_cast<double>(counted_) * share);
      counted_ = 0;
      since_ = now;
    }
    uint64_t taken() const { return taken_; }

   private:
    uint64_t taken_ = 0;
    uint64_t counted_ = 0;  // since `since_`
    TimePoint since_{};
  };

  uint32_t Bounded(uint64_t shards) const {
    if (shards_min_ == 0) return 0;
    return static_cast<uint32_t>(
        std::clamp<uint64_t>(shards, shards_min_, std::max(shards_min_, kShardsMax)));
  }

  const uint32_t shards_min_;
  uint32_t goal_;
  Meter ahead_;
  Meter restart_;
  TimePoint begun_{};
  std::chrono::nanoseconds trip_{0};
};

}  // namespace muster::sdk
