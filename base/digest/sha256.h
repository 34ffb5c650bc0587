#pragma once

#include <string>
#include <string_view>

namespace muster {

/// SHA-256 as 64 lower-case hexadecimal digits. Thread-safe.
std::string Sha256Hex(std::string_view bytes);

}  // namespace muster
