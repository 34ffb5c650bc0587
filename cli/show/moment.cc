#include "cli/show/moment.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "job/file/scalars.h"

namespace muster {

std::optional<WallTime> ParseWallTime(std::string_view text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  int end = 0;
  const std::string copy(text);
  const int read = std::sscanf(copy.c_str(), "%4d-%2u-%2uT%2u:%2u:%9lfZ%n", &year, &month, &day,
                               &hour, &minute, &second, &end);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  const bool valid = read == 6 && static_cast<size_t>(end) == copy.size() && date.ok() &&
                     year >= 1970 && hour < 24 && minute < 60 && second >= 0 && second < 61;
  if (!valid) return std::nullopt;
  return WallTime(std::chrono::sys_days(date).time_since_epoch()) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + WallTime(static_cast<int64_t>(second * 1e6));
}

absl::StatusOr<WallTime> ParseSince(std::string_view text, WallTime now) {
  if (const auto ago = job_file::ParseDuration(text); ago.ok()) return now - *ago;
  if (const std::optional<WallTime> time = ParseWallTime(text)) return *time;
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no time: give how long ago (90s, 5m, 1h30m) or 2026-01-31T12:34:56Z",
                  text.substr(0, 60)));
}

}  // namespace muster
