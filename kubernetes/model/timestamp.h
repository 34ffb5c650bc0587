#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace muster::kubernetes {

/// Parses an RFC 3339 timestamp of the API, such as "2026-11-26T13:30:00Z"; it may have a fraction
/// or an offset. None for any other text. Pure.
std::optional<WallTime> ParseTimestamp(std::string_view text);

}  // namespace muster::kubernetes
