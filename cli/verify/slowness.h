#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace muster::verify {

/// How slow a worker is on purpose, so that a test has time to kill something. It needs only the
/// standard library, because trainers of tests use it.
struct Slowness {
  static constexpr int64_t kMaxUs = 1'000'000'000;

  /// Every minibatch takes that much longer.
  std::chrono::microseconds each{0};
  /// Only while this file exists. If it begins with a whole number of microseconds up to kMaxUs,
  /// that counts instead of `each`. Empty: always.
  std::string while_file;
};

/// How long a minibatch that runs now is to wait. Reads the file. Thread-safe.
inline std::chrono::microseconds WaitOf(const Slowness& slowness) {
  if (slowness.while_file.empty()) return slowness.each;
  std::ifstream file(slowness.while_file);
  if (!file.is_open()) return std::chrono::microseconds(0);
  std::string text;
  file >> text;
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  if (!whole || number < 0 || number > Slowness::kMaxUs) return slowness.each;
  return std::chrono::microseconds(number);
}

}  // namespace muster::verify
