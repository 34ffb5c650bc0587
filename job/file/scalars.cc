#include "job/file/scalars.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/status.h"

namespace muster::job_file {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kDurationUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
constexpr Unit kMemoryUnits[] = {{"", 1},        {"Ki", 0x1p10}, {"Mi", 0x1p20},
                                 {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"k", 1e3},
                                 {"M", 1e6},     {"G", 1e9},     {"T", 1e12}};

const Unit* FindUnit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

/// Takes digits with an optional fraction from the beginning of `text`. False if there are none.
bool TakeNumber(std::string_view* text, double* number) {
  size_t length = 0;
  int points = 0;
  for (; length < text->size(); ++length) {
    const char c = (*text)[length];
    if (c == '.') ++points;
    if (c != '.' && (c < '0' || c > '9')) break;
  }
  if (length == 0 || points > 1 || text->front() == '.' || (*text)[length - 1] == '.') return false;
  constexpr size_t kDigitsMax = 24;  // longer numbers are beyond every bound
  if (length > kDigitsMax) return false;
  const auto parsed = std::from_chars(text->data(), text->data() + length, *number);
  if (parsed.ec != std::errc() || parsed.ptr != text->data() + length) return false;
  text->remove_prefix(length);
  return true;
}

std::string_view TakeUnit(std::string_view* text) {
  size_t length = 0;
  while (length < text->size() && ((*text)[length] < '0' || (*text)[length] > '9')) ++length;
  const std::string_view unit = text->substr(0, length);
  text->remove_prefix(length);
  return unit;
}

}  // namespace

absl::StatusOr<uint64_t> ParseWhole(std::string_view text) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) {
    return absl::InvalidArgumentError(fmt::format("{} is too large", text));
  }
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is not a whole number like 16", text));
  }
  return value;
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  std::string_view rest = text;
  double number = 0;
  if (!TakeNumber(&rest, &number) || !rest.empty()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is not a number like 1.5", text));
  }
  return number;
}

absl::StatusOr<bool> ParseBool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return absl::InvalidArgumentError(fmt::format("'{}' is neither true nor false", text));
}

absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  const std::string_view whole = text;
  const auto bad = [whole](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a duration like 500ms, 10s, 2m or 1h: {}", whole, why));
  };
  if (text.empty()) return bad("it is empty");
  double total_ms = 0;
  while (!text.empty()) {
    double number = 0;
    if (!TakeNumber(&text, &number)) return bad("a number is missing");
    const std::string_view name = TakeUnit(&text);
    if (name.empty()) return bad("the unit is missing");
    const Unit* unit = FindUnit(kDurationUnits, name);
    if (unit == nullptr) return bad(fmt::format("'{}' is not one of ms, s, m, h", name));
    total_ms += number * unit->factor;
  }
  constexpr double kYearMs = 365.0 * 24 * 3'600'000;
  if (total_ms > kYearMs) return bad("it is longer than a year");
  if (std::abs(total_ms - std::round(total_ms)) > 1e-6)
    return bad("it is not a whole number of milliseconds");
  return std::chrono::milliseconds(std::llround(total_ms));
}

absl::StatusOr<uint64_t> ParseMemory(std::string_view text) {
  const std::string_view whole = text;
  double number = 0;
  const bool ok = TakeNumber(&text, &number);
  const Unit* unit = ok ? FindUnit(kMemoryUnits, text) : nullptr;
  if (unit == nullptr) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is not an amount of memory like 256Mi or 1Gi (units: Ki, Mi, Gi, Ti, k, M, G, T)",
        whole));
  }
  const double bytes = std::round(number * unit->factor);
  if (bytes > 0x1p60) return absl::InvalidArgumentError(fmt::format("{} is too large", whole));
  return static_cast<uint64_t>(bytes);
}

absl::StatusOr<double> ParseCpu(std::string_view text) {
  const std::string_view whole = text;
  double number = 0;
  const bool ok = TakeNumber(&text, &number) && (text.empty() || text == "m");
  if (!ok) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a number of cores like 2, 0.5 or 500m", whole));
  }
  return text == "m" ? number / 1000 : number;
}

std::string FormatDuration(std::chrono::milliseconds duration) {
  const int64_t ms = duration.count();
  if (ms != 0 && ms % 3'600'000 == 0) return fmt::format("{}h", ms / 3'600'000);
  if (ms != 0 && ms % 60'000 == 0) return fmt::format("{}m", ms / 60'000);
  if (ms % 1000 == 0) return fmt::format("{}s", ms / 1000);
  return fmt::format("{}ms", ms);
}

std::string FormatMemory(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

}  // namespace muster::job_file
