#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"

/// Parses times of a command line. Pure.
namespace muster {

/// Parses "2026-01-31T12:34:56Z", the form of `muster events`. None for any other text.
std::optional<WallTime> ParseWallTime(std::string_view text);

/// Parses "5m", which means that long before `now`, or a time as above. InvalidArgument if it is
/// neither.
absl::StatusOr<WallTime> ParseSince(std::string_view text, WallTime now);

}  // namespace muster
