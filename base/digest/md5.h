#pragma once

#include <string>
#include <string_view>

namespace muster {

/// MD5 in base64, as the header Content-MD5 wants it; a checksum against accidents only. Empty if
/// the rules of this machine forbid MD5 (FIPS). Thread-safe.
std::string Md5Base64(std::string_view bytes);

}  // namespace muster
