#pragma once

#include <string_view>

namespace muster {

/// Version of the programs and of the SDK, "major.minor.patch": the one place where it stands
/// (CMakeLists.txt reads this line). Peers must agree on major.minor.
inline constexpr char kVersion[] = "0.2.0";
/// "major.minor" of it: what Hello and Register compare.
inline constexpr std::string_view kCompatibleVersion =
    std::string_view(kVersion).substr(0, std::string_view(kVersion).rfind('.'));

}  // namespace muster
