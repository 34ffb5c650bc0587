#pragma once

namespace muster {

/// Version of the programs and of the SDK, "major.minor.patch". Peers must agree on major.minor.
inline constexpr char kVersion[] = "0.1.0";
/// What Hello and Register compare.
inline constexpr char kCompatibleVersion[] = "0.1";

}  // namespace muster
