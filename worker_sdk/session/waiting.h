#pragma once

#include <chrono>

namespace muster::sdk {

/// Nothing waits longer than this without a line on stderr that says for what.
inline constexpr std::chrono::seconds kWaitingLineAfter{2};
/// Later lines of the same wait come at growing distances, at most this.
inline constexpr std::chrono::seconds kWaitingLineEveryMax{60};

}  // namespace muster::sdk
