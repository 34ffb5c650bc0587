#pragma once

#include <string_view>

namespace muster {

/// The version of the programs and of the SDK, "major.minor.patch". It is written only here;
/// CMakeLists.txt reads this line. Peers must have the same major.minor.
inline constexpr char kVersion[] = "0.2.0";
/// The part "major.minor", which Hello and Register compare.
inline constexpr std::string_view kCompatibleVersion =
    std::string_view(kVersion).substr(0, std::string_view(kVersion).rfind('.'));

}  // namespace muster
