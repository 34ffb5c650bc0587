#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace muster {

/// An argument that is a whole number from 1 to `max`; nothing if it is something else.
inline std::optional<uint64_t> WholeNumber(std::string_view text, uint64_t max) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number == 0 || number > max) return std::nullopt;
  return number;
}

}  // namespace muster
