#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Parsers for the scalars of a job file. Errors (kInvalidArgument) say what is wrong with the text
/// and show a correct example; the caller adds the position.
namespace muster::job_file {

/// Decimal digits.
absl::StatusOr<uint64_t> ParseWhole(std::string_view text);
/// A decimal number: "1.5".
absl::StatusOr<double> ParseNumber(std::string_view text);
/// "true" or "false".
absl::StatusOr<bool> ParseBool(std::string_view text);
/// One or several numbers with a unit: "500ms", "10s", "1.5m", "1h30m". The sum is a whole number
/// of milliseconds, at most a year.
absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);
/// Bytes: a number with no unit, Ki, Mi, Gi, Ti (powers of 1024) or k, M, G, T (of 1000): "1.5Gi".
absl::StatusOr<uint64_t> ParseMemory(std::string_view text);
/// Cores: "0.5", "2", or thousandths "500m".
absl::StatusOr<double> ParseCpu(std::string_view text);

/// The shortest text that ParseDuration and ParseMemory read back.
std::string FormatDuration(std::chrono::milliseconds duration);
std::string FormatMemory(uint64_t bytes);

}  // namespace muster::job_file
