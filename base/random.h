#pragma once

#include <cstdint>

namespace muster {

/// Mixes 64 bits so that every input bit changes about half of the output bits; a bijection.
/// Source: the SplitMix64 finaliser (Steele, Lea, Flood, OOPSLA 2014, section 5; constants: variant
/// 13 of D. Stafford).
constexpr uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

/// One 64-bit hash of two, three or four words; order matters. It must never change, because stored
/// state depends on it.
constexpr uint64_t HashWords(uint64_t a, uint64_t b) {
  return Mix64(Mix64(a + 0x9e3779b97f4a7c15ULL) ^ (b + 0xbf58476d1ce4e5b9ULL));
}
constexpr uint64_t HashWords(uint64_t a, uint64_t b, uint64_t c) {
  return HashWords(HashWords(a, b), c);
}
constexpr uint64_t HashWords(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return HashWords(HashWords(a, b, c), d);
}

/// A small seeded generator (SplitMix64): the same seed gives the same numbers everywhere. Not
/// thread-safe.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15ULL); }
  /// Uniform in [0, bound); bound > 0. Bias is below bound / 2^64.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  /// Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace muster
