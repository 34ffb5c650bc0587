#include "examples/text/characters.h"

namespace text {
namespace {

constexpr char kFirst = ' ', kLast = '~';

}  // namespace

std::optional<std::string> AppendNumbers(std::string_view record, size_t length,
                                         std::vector<uint8_t>& numbers) {
  if (record.size() != length) {
    return std::to_string(record.size()) + " characters, not " + std::to_string(length);
  }
  const size_t before = numbers.size();
  for (size_t i = 0; i < record.size(); ++i) {
    const char c = record[i];
    if (c != '\t' && (c < kFirst || c > kLast)) {
      numbers.resize(before);
      return "character " + std::to_string(i + 1) + " has the code " +
             std::to_string(static_cast<uint8_t>(c)) + ", which is not in the alphabet";
    }
    numbers.push_back(c == '\t' ? uint8_t{0} : static_cast<uint8_t>(c - kFirst + 1));
  }
  return std::nullopt;
}

std::string TextOf(std::span<const uint8_t> numbers) {
  std::string text;
  for (const uint8_t number : numbers) {
    text += number == 0 ? '\n' : static_cast<char>(kFirst + number - 1);
  }
  return text;
}

}  // namespace text
