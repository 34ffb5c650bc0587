#pragma once

#include <cstdint>

namespace text {

/// Random numbers that are the same everywhere. Not thread-safe.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014
/// (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// From 0 to below 1, evenly distributed.
  float Uniform() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t mixed = (state_ ^ state_ >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    return static_cast<float>(mixed >> 40) / (1 << 24);
  }

 private:
  uint64_t state_;
};

}  // namespace text
