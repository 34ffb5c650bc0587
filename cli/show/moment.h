#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"

/// Times of a command line. Pure.
namespace muster {

/// "2026-01-31T12:34:56Z", as `muster events` shows times; nothing for any other text.
std::optional<WallTime> ParseWallTime(std::string_view text);

/// "5m": so long before `now`; or a time as above. InvalidArgument when it is neither.
absl::StatusOr<WallTime> ParseSince(std::string_view text, WallTime now);

}  // namespace muster
