#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// The alphabet: the printable characters of ASCII, and a tab, which stands for the end of a line.
/// Records are lines, so they cannot contain the end of a line itself.
inline constexpr size_t kCharacters = 96;

/// Appends the numbers of the characters of `record`, each below kCharacters. Returns the reason,
/// and appends nothing, if it has not exactly `length` characters or one outside the alphabet.
std::optional<std::string> AppendNumbers(std::string_view record, size_t length,
                                         std::vector<uint8_t>& numbers);

/// The text of the numbers, with real ends of lines. Each must be below kCharacters.
std::string TextOf(std::span<const uint8_t> numbers);

}  // namespace text
