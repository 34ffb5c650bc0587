#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace muster::testing {

/// Takes a fuzzed input apart, front to back. What is not there any more is zero, or empty.
class FuzzInput {
 public:
  explicit FuzzInput(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  std::string_view Bytes(size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// Little-endian.
  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    const std::string_view taken = Bytes(bytes);
    for (size_t i = 0; i < taken.size(); ++i) {
      number |= uint64_t{static_cast<uint8_t>(taken[i])} << (8 * i);
    }
    return number;
  }
  /// Bytes behind their number, which has two bytes.
  std::string_view Sized() { return Bytes(Number(2)); }

 private:
  std::string_view rest_;
};

}  // namespace muster::testing
