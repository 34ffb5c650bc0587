#pragma once

#include <string>
#include <string_view>

namespace muster {

/// `text` with every byte that is not part of valid UTF-8 replaced by '?', then cut to at most
/// `bytes_max` bytes at the border of a character. What people and trainers write goes through here
/// before Protobuf, which refuses a whole message for one such byte.
std::string ValidUtf8(std::string_view text, size_t bytes_max = std::string_view::npos);

bool IsValidUtf8(std::string_view text);

/// `text` on one line, with nothing in it that a terminal would obey: control characters are
/// blanks.
std::string Printable(std::string_view text);

/// What a message repeats of a text from outside: as UTF-8 and on one line, and "..." after the
/// first `bytes_max` bytes.
std::string Excerpt(std::string_view text, size_t bytes_max);

}  // namespace muster
