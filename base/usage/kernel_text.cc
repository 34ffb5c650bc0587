#include "base/usage/kernel_text.h"

#include <algorithm>
#include <charconv>

namespace muster {

uint64_t FirstNumber(std::string_view text) {
  const size_t begin = std::min(text.find_first_of("0123456789"), text.size());
  uint64_t number = 0;
  std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
}

std::optional<std::string_view> RestOfLine(std::string_view text, std::string_view begin) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(begin)) return line.substr(begin.size());
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

std::optional<uint64_t> FindNumber(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) {
      const std::string_view rest = line.substr(key.size());
      if (rest.starts_with(' ') || rest.starts_with(':')) return FirstNumber(rest);
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

uint64_t KeyedNumber(std::string_view text, std::string_view key) {
  return FindNumber(text, key).value_or(0);
}

uint64_t DroppableBytes(std::string_view memory_stat) {
  return KeyedNumber(memory_stat, "inactive_file") + KeyedNumber(memory_stat, "active_file") +
         KeyedNumber(memory_stat, "slab_reclaimable");
}

}  // namespace muster
