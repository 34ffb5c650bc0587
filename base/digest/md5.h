#pragma once

#include <string>
#include <string_view>

namespace muster {

/// MD5 in base64, for the header Content-MD5. It is a checksum against accidents only. Empty if
/// this machine forbids MD5 (FIPS). Thread-safe.
std::string Md5Base64(std::string_view bytes);

}  // namespace muster
