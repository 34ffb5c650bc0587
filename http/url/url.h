#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Encodes all bytes as %XX except letters, digits, "-._~" and those of `kept`. The result can be a
/// part of a path, or a name or value of a query. S3's signatures demand this form, too.
std::string UrlEncode(std::string_view text, std::string_view kept = "");
/// The inverse. A '%' without two hexadecimal digits stays as it is.
std::string UrlDecode(std::string_view text);

}  // namespace muster
