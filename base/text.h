#pragma once

#include <string>
#include <string_view>

namespace muster {

/// `text` with every byte that is not part of valid UTF-8 replaced by '?', then cut to at most
/// `bytes_max` bytes at the border of a character. What people and trainers write goes through here
/// before Protobuf, which refuses a whole message for one such byte.
std::string ValidUtf8(std::string_view text, size_t bytes_max = std::string_view::npos);

}  // namespace muster
