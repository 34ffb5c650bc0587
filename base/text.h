#pragma once

#include <string>
#include <string_view>

namespace muster {

/// `text` with every byte that is not part of valid UTF-8 replaced by '?', then cut to at most
/// `bytes_max` bytes at the border of a character. Texts of users and trainers go through it before
/// Protobuf, which refuses a whole message for one invalid byte.
std::string ValidUtf8(std::string_view text, size_t bytes_max = std::string_view::npos);

bool IsValidUtf8(std::string_view text);

/// `text` on one line; control characters, which a terminal would obey, become blanks.
std::string Printable(std::string_view text);

/// A quotation of a text from outside, for messages: in UTF-8, on one line, and with "..." after
/// the first `bytes_max` bytes.
std::string Excerpt(std::string_view text, size_t bytes_max);

}  // namespace muster
