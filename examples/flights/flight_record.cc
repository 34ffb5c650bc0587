#include "examples/flights/flight_record.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace flights {
namespace {

constexpr size_t kColumnsMax = 64;
constexpr double kLateMinutes = 15;

/// Cells of the line, into `cells`; the number of cells, which may be larger than the array.
size_t Split(std::string_view line, std::array<std::string_view, kColumnsMax>& cells) {
  size_t count = 0;
  while (true) {
    const size_t comma = line.find(',');
    if (count < kColumnsMax) cells[count] = line.substr(0, comma);
    ++count;
    if (comma == std::string_view::npos) return count;
    line.remove_prefix(comma + 1);
  }
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string quoted = "'" + std::string(text.substr(0, kShown));
  return quoted + (text.size() > kShown ? "...'" : "'");
}

bool InRange(std::string_view text, int low, int high) {
  const std::optional<int> value = ParseNumber<int>(text);
  return value.has_value() && *value >= low && *value <= high;
}

}  // namespace

uint64_t FieldKey(Field field, std::string_view value) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&hash](uint8_t byte) {
    hash ^= byte;
    hash *= 0x100000001b3ULL;
  };
  add(static_cast<uint8_t>(field));
  for (const char c : value) add(static_cast<uint8_t>(c));
  hash ^= hash >> 30;
  hash *= 0xbf58476d1ce4e5b9ULL;
  hash ^= hash >> 27;
  hash *= 0x94d049bb133111ebULL;
  return hash ^ (hash >> 31);
}

bool FlightParser::Open(std::string_view header, std::string& error) {
  std::array<std::string_view, kColumnsMax> cells;
  width_ = Split(header, cells);
  if (width_ > kColumnsMax) {
    error = "the header has " + std::to_string(width_) + " columns, more than " +
            std::to_string(kColumnsMax);
    return false;
  }
  for (size_t column = 0; column < kColumnCount; ++column) {
    const auto end = cells.begin() + static_cast<ptrdiff_t>(width_);
    const auto found = std::find(cells.begin(), end, kColumnNames[column]);
    if (found == end) {
      error = "the header has no column " + Quoted(kColumnNames[column]) + ": " + Quoted(header);
      return false;
    }
    positions_[column] = static_cast<size_t>(found - cells.begin());
  }
  return true;
}

bool FlightParser::Parse(std::string_view line, FlightRecord& record, std::string& error) const {
  std::array<std::string_view, kColumnsMax> cells;
  const size_t count = Split(line, cells);
  if (count != width_) {
    error = std::to_string(count) + " columns where the header has " + std::to_string(width_);
    return false;
  }
  const auto cell = [&](Column column) { return cells[positions_[column]]; };
  const auto refuse = [&](Column column, std::string_view expected) {
    error = std::string(kColumnNames[column]) + " is " + Quoted(cell(column)) + ", not " +
            std::string(expected);
    return false;
  };
  if (!InRange(cell(kColumnMonth), 1, 12)) return refuse(kColumnMonth, "1 to 12");
  if (!InRange(cell(kColumnDay), 1, 31)) return refuse(kColumnDay, "1 to 31");
  if (!InRange(cell(kColumnHour), 0, 24)) return refuse(kColumnHour, "0 to 24");
  if (!InRange(cell(kColumnMinute), 0, 59)) return refuse(kColumnMinute, "0 to 59");
  for (const Column column :
       {kColumnCarrier, kColumnFlight, kColumnTailnum, kColumnOrigin, kColumnDestination}) {
    if (cell(column).empty()) return refuse(column, "a name");
  }
  record.label = 1;
  if (const std::string_view delay = cell(kColumnArrivalDelay); delay != "NA") {
    const std::optional<double> minutes = ParseNumber<double>(delay);
    if (!minutes.has_value()) return refuse(kColumnArrivalDelay, "minutes or NA");
    record.label = *minutes > kLateMinutes ? 1 : 0;
  }

  const std::string date = std::string(cell(kColumnMonth)) + "-" + std::string(cell(kColumnDay));
  const std::string carrier_flight =
      std::string(cell(kColumnCarrier)) + "-" + std::string(cell(kColumnFlight));
  const std::array<std::string_view, kFieldCount> values = {
      cell(kColumnMonth),       date,
      cell(kColumnCarrier),     carrier_flight,
      cell(kColumnTailnum),     cell(kColumnOrigin),
      cell(kColumnDestination), cell(kColumnHour),
      cell(kColumnMinute)};
  for (size_t field = 0; field < kFieldCount; ++field) {
    record.keys[field] = FieldKey(static_cast<Field>(field), values[field]);
  }
  return true;
}

}  // namespace flights
