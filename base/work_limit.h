#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace muster {

/// How much work one slice of a long task may still do. The unit is one byte moved, or work that
/// costs as much. The code that does the work counts it, so slices are the same on every machine
/// and in every test. A slice ends at the first opportunity after the limit is used up, so it
/// always makes progress.
class WorkLimit {
 public:
  explicit WorkLimit(uint64_t bytes) : left_(bytes) {}
  static WorkLimit None() { return WorkLimit(std::numeric_limits<uint64_t>::max()); }

  void Spend(uint64_t bytes) { left_ -= bytes < left_ ? bytes : left_; }
  bool spent() const { return left_ == 0; }
  /// How many things of this cost still fit, at least one of `count` > 0.
  size_t Fits(size_t count, uint64_t bytes_each) const {
    const uint64_t fits = left_ / (bytes_each == 0 ? 1 : bytes_each);
    return fits >= count ? count : fits == 0 && count > 0 ? 1 : static_cast<size_t>(fits);
  }

 private:
  uint64_t left_;
};

}  // namespace muster
