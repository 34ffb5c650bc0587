#include "kubernetes/model/timestamp.h"

#include <charconv>

namespace muster::kubernetes {
namespace {

/// Takes `digits` digits from the front of `text`.
std::optional<int> TakeNumber(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  const char* end = text.data() + digits;
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool TakeOneOf(std::string_view& text, std::string_view accepted) {
  if (text.empty() || accepted.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::chrono::microseconds TakeFraction(std::string_view& text) {
  int64_t value = 0;
  int64_t unit = 1'000'000;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    unit /= 10;
    value += (text.front() - '0') * unit;
    text.remove_prefix(1);
  }
  return std::chrono::microseconds(value);
}

/// "Z" or "+01:00".
std::optional<std::chrono::minutes> TakeOffset(std::string_view& text) {
  if (TakeOneOf(text, "Zz")) return std::chrono::minutes(0);
  const bool west = !text.empty() && text.front() == '-';
  if (!TakeOneOf(text, "+-")) return std::nullopt;
  const std::optional<int> hours = TakeNumber(text, 2);
  if (!hours || !TakeOneOf(text, ":")) return std::nullopt;
  const std::optional<int> minutes = TakeNumber(text, 2);
  if (!minutes) return std::nullopt;
  const std::chrono::minutes offset(*hours * 60 + *minutes);
  return west ? -offset : offset;
}

}  // namespace

std::optional<WallTime> ParseTimestamp(std::string_view text) {
  const std::optional<int> year = TakeNumber(text, 4);
  if (!year || !TakeOneOf(text, "-")) return std::nullopt;
  const std::optional<int> month = TakeNumber(text, 2);
  if (!month || !TakeOneOf(text, "-")) return std::nullopt;
  const std::optional<int> day = TakeNumber(text, 2);
  if (!day || !TakeOneOf(text, "Tt ")) return std::nullopt;
  const std::optional<int> hour = TakeNumber(text, 2);
  if (!hour || !TakeOneOf(text, ":")) return std::nullopt;
  const std::optional<int> minute = TakeNumber(text, 2);
  if (!minute || !TakeOneOf(text, ":")) return std::nullopt;
  const std::optional<int> second = TakeNumber(text, 2);
  if (!second) return std::nullopt;
  std::chrono::microseconds fraction(0);
  if (TakeOneOf(text, ".")) fraction = TakeFraction(text);
  const std::optional<std::chrono::minutes> offset = TakeOffset(text);
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!offset || !text.empty() || !date.ok()) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto since_epoch = std::chrono::sys_days(date).time_since_epoch();
  return since_epoch + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second) + fraction - *offset;
}

}  // namespace muster::kubernetes
