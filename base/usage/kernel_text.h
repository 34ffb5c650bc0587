#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// What the texts of /proc and of control groups say. Pure, thread-safe functions.
namespace muster {

/// 0 if there is none ("max").
uint64_t FirstNumber(std::string_view text);

/// What follows in the first line that begins so. None if there is no such line.
std::optional<std::string_view> RestOfLine(std::string_view text, std::string_view begin);

/// The number in the line "key 123" or "key:   123 kB", without its unit. None if there is no such
/// line.
std::optional<uint64_t> FindNumber(std::string_view text, std::string_view key);
/// The same; 0 if there is no such line.
uint64_t KeyedNumber(std::string_view text, std::string_view key);

/// Of memory.stat, version 2: the memory that the kernel drops if it must. That is both lists of
/// the page cache, because it also drops active pages. Shared memory is on neither list.
uint64_t DroppableBytes(std::string_view memory_stat);

}  // namespace muster
