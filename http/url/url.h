#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Everything but letters, digits, "-._~" and the bytes of `kept` as %XX: a part of a path, or a
/// name or value of a query, as S3's signatures demand it, too.
std::string UrlEncode(std::string_view text, std::string_view kept = "");
/// The inverse. A '%' without two digits stays as it is.
std::string UrlDecode(std::string_view text);

}  // namespace muster
