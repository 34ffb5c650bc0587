#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace muster {

/// kOff can only be the lowest level. Then nothing is written.
enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// Sets the name that every line of this process carries ("master", "ps-0") and the lowest level
/// written. Lines go to stderr: time, level, name, text. Call once, before threads start.
void InitLogging(std::string_view process_name, LogLevel lowest);

/// Writes one line. Thread-safe; never throws.
void LogLine(LogLevel level, std::string_view text);

/// Formats and writes one line. Changes of state are logged with their ids. Thread-safe.
template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  LogLine(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace muster
