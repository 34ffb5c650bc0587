#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace muster::kubernetes {

/// The time that an RFC 3339 timestamp of the API names ("2026-11-26T13:30:00Z", with a fraction or
/// an offset, too); nothing if it is no such timestamp. Pure.
std::optional<WallTime> ParseTimestamp(std::string_view text);

}  // namespace muster::kubernetes
