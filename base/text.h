#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// Returns `text` with every byte that is not part of valid UTF-8 replaced by '?', cut to at most
/// `bytes_max` bytes at the end of a character. Texts of users and trainers must pass through it
/// before Protobuf, which refuses a whole message for one invalid byte.
std::string ValidUtf8(std::string_view text, size_t bytes_max = std::string_view::npos);

bool IsValidUtf8(std::string_view text);

/// Returns `text` as one line. Control characters, which a terminal would obey, become blanks.
std::string Printable(std::string_view text);

/// Quotes a text from outside for a message: in UTF-8, as one line, and with "..." after the first
/// `bytes_max` bytes.
std::string Excerpt(std::string_view text, size_t bytes_max);

/// "1,234,567". Texts for people write counts like this.
inline std::string CountText(uint64_t count) {
  std::string text = std::to_string(count);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

/// "1 shard", "1,234 shards". Give `many` if the plural does not end in s.
inline std::string CountText(uint64_t count, std::string_view one, std::string_view many = "") {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", CountText(count), one)
                      : fmt::format("{} {}", CountText(count), many);
}

}  // namespace muster
