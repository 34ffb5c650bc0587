#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flights {

/// Categorical fields of a record, in the order of FlightRecord::keys. Only what is known when the
/// ticket is booked: no departure, arrival or air time.
enum Field : size_t {
  kMonth,
  kDate,
  kCarrier,
  kCarrierFlight,
  kTailnum,
  kOrigin,
  kDestination,
  kHour,
  kMinute,
  kFieldCount,
};

/// One flight as the model sees it.
struct FlightRecord {
  /// FieldKey of each field's value.
  std::array<uint64_t, kFieldCount> keys{};
  /// 1: it arrived more than 15 minutes late, or not at all (cancelled or diverted); else 0.
  float label = 0;
};

/// The 64-bit key of a field's value: the row of the embedding tables. Equal texts in different
/// fields have different keys. A pure function, never to be changed: stored weights depend on it.
/// Source: FNV-1a (Fowler, Noll, Vo) with the SplitMix64 finaliser.
uint64_t FieldKey(Field field, std::string_view value);

/// The columns of flights.csv: of records that come one by one, without a header, from a topic.
inline constexpr std::string_view kFlightsHeader =
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour";

/// Parses lines of flights.csv. Finds its columns by the names in the header, so their order does
/// not matter. Thread-compatible: Parse may be called by several threads.
class FlightParser {
 public:
  /// False, with `error` naming the missing column, when `header` lacks one.
  bool Open(std::string_view header, std::string& error);

  /// False, with `error` saying which column is wrong and with which value, when the line is not a
  /// flight; `record` is then unspecified. Needs Open first.
  bool Parse(std::string_view line, FlightRecord& record, std::string& error) const;

 private:
  enum Column : size_t {
    kColumnMonth,
    kColumnDay,
    kColumnCarrier,
    kColumnFlight,
    kColumnTailnum,
    kColumnOrigin,
    kColumnDestination,
    kColumnHour,
    kColumnMinute,
    kColumnArrivalDelay,
    kColumnCount,
  };
  static constexpr std::array<std::string_view, kColumnCount> kColumnNames = {
      "month",  "day",  "carrier", "flight", "tailnum",
      "origin", "dest", "hour",    "minute", "arr_delay"};

  size_t width_ = 0;  // columns in the file
  std::array<size_t, kColumnCount> positions_{};
};

}  // namespace flights
