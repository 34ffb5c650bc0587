#pragma once

#include <string_view>

namespace muster {

/// The version of the programs and of the SDK, "major.minor.patch". It is written only here;
/// CMakeLists.txt reads this line. Peers must have the same major.minor.
inline constexpr char kVersion[] = "0.5.0";
/// The part "major.minor", which Hello and Register compare.
inline constexpr std::string_view kCompatibleVersion =
    std::string_view(kVersion).substr(0, std::string_view(kVersion).rfind('.'));

/// Why a job of a version before 0.3 does not go on, and what to do.
inline constexpr char kCutByEarlierVersion[] =
    "the job began under a version of Muster before 0.3, which cut data into shards in another "
    "way. "
    "Finish it with that version, or begin again with another spec.stateDirectory (`muster export` "
    "writes the weights, and `warm_start` of a table begins with them)";

}  // namespace muster
