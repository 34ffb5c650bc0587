#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Parsers for the scalars of a job file. kInvalidArgument says what is wrong with the text, and
/// shows a correct example. The caller adds the position.
namespace muster::job_file {

/// Parses decimal digits.
absl::StatusOr<uint64_t> ParseWhole(std::string_view text);
/// Parses a decimal number: "1.5".
absl::StatusOr<double> ParseNumber(std::string_view text);
/// Parses "true" or "false".
absl::StatusOr<bool> ParseBool(std::string_view text);
/// Parses one or several numbers with a unit: "500ms", "10s", "1.5m", "1h30m". The sum must be a
/// whole number of milliseconds, at most a year.
absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);
/// Parses bytes: a number with no unit, with Ki, Mi, Gi, Ti (powers of 1024), or with k, M, G, T
/// (powers of 1000): "1.5Gi".
absl::StatusOr<uint64_t> ParseMemory(std::string_view text);
/// Parses cores: "0.5", "2", or thousandths "500m".
absl::StatusOr<double> ParseCpu(std::string_view text);

/// The shortest text from which ParseDuration and ParseMemory read the same value.
std::string FormatDuration(std::chrono::milliseconds duration);
std::string FormatMemory(uint64_t bytes);

}  // namespace muster::job_file
