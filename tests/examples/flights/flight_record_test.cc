#include "examples/flights/flight_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace flights {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] =
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour";
constexpr char kLine[] =
    "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z";

/// kLine with the cell that `column` names replaced.
std::string With(std::string_view column, std::string_view value) {
  std::string_view names = kHeader;
  std::string_view cells = kLine;
  std::string line;
  while (true) {
    const size_t name_end = names.find(',');
    const size_t cell_end = cells.find(',');
    line += names.substr(0, name_end) == column ? value : cells.substr(0, cell_end);
    if (name_end == std::string_view::npos) return line;
    line += ',';
    names.remove_prefix(name_end + 1);
    cells.remove_prefix(cell_end + 1);
  }
}

class FlightParserTest : public ::testing::Test {
 protected:
  FlightParserTest() { EXPECT_TRUE(parser_.Open(kHeader, error_)) << error_; }
  FlightRecord Parsed(const std::string& line) {
    FlightRecord record;
    EXPECT_TRUE(parser_.Parse(line, record, error_)) << error_;
    return record;
  }

  std::string error_;
  FlightParser parser_;
};

TEST_F(FlightParserTest, KeysAreThoseOfTheValues) {
  const FlightRecord record = Parsed(kLine);
  EXPECT_EQ(record.keys[kMonth], FieldKey(kMonth, "1"));
  EXPECT_EQ(record.keys[kDate], FieldKey(kDate, "1-1"));
  EXPECT_EQ(record.keys[kCarrier], FieldKey(kCarrier, "UA"));
  EXPECT_EQ(record.keys[kCarrierFlight], FieldKey(kCarrierFlight, "UA-1545"));
  EXPECT_EQ(record.keys[kTailnum], FieldKey(kTailnum, "N14228"));
  EXPECT_EQ(record.keys[kOrigin], FieldKey(kOrigin, "EWR"));
  EXPECT_EQ(record.keys[kDestination], FieldKey(kDestination, "IAH"));
  EXPECT_EQ(record.keys[kHour], FieldKey(kHour, "5"));
  EXPECT_EQ(record.keys[kMinute], FieldKey(kMinute, "15"));
}

TEST_F(FlightParserTest, WhatHappensAfterBookingChangesNoKey) {
  const FlightRecord record = Parsed(kLine);
  for (const char* column : {"dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"}) {
    EXPECT_EQ(Parsed(With(column, "999")).keys, record.keys) << column;
  }
}

TEST_F(FlightParserTest, LabelIsLateByMoreThanAQuarterOfAnHourOrNeverThere) {
  EXPECT_EQ(Parsed(With("arr_delay", "15")).label, 0);
  EXPECT_EQ(Parsed(With("arr_delay", "16")).label, 1);
  EXPECT_EQ(Parsed(With("arr_delay", "-70")).label, 0);
  EXPECT_EQ(Parsed(With("arr_delay", "NA")).label, 1);
}

TEST_F(FlightParserTest, ColumnsAreFoundByName) {
  FlightParser parser;
  ASSERT_TRUE(
      parser.Open("dest,origin,tailnum,flight,carrier,minute,hour,day,month,arr_delay", error_));
  FlightRecord record;
  ASSERT_TRUE(parser.Parse("IAH,EWR,N14228,1545,UA,15,5,1,1,11", record, error_)) << error_;
  EXPECT_EQ(record.keys, Parsed(kLine).keys);
}

TEST_F(FlightParserTest, RefusesWhatIsNotAFlightAndSaysWhy) {
  const struct {
    std::string line;
    const char* message;
  } cases[] = {
      {"", "1 columns where the header has 19"},
      {std::string(kLine) + ",x", "20 columns"},
      {With("month", "13"), "month is '13', not 1 to 12"},
      {With("month", "1x"), "month is '1x'"},
      {With("day", "0"), "day is '0'"},
      {With("hour", "NA"), "hour is 'NA'"},
      {With("minute", "60"), "minute is '60'"},
      {With("carrier", ""), "carrier is '', not a name"},
      {With("arr_delay", "late"), "arr_delay is 'late', not minutes or NA"},
      {With("arr_delay", std::string(100, '9') + "x"), "...'"},
      {std::string(100, ','), "101 columns"},
  };
  for (const auto& [line, message] : cases) {
    FlightRecord record;
    EXPECT_FALSE(parser_.Parse(line, record, error_)) << line;
    EXPECT_THAT(error_, HasSubstr(message));
  }
}

TEST_F(FlightParserTest, HeaderWithoutAColumnIsRefused) {
  FlightParser parser;
  EXPECT_FALSE(parser.Open("", error_));
  EXPECT_FALSE(parser.Open("month,day,carrier,flight,tailnum,origin,dest,hour,minute", error_));
  EXPECT_THAT(error_, HasSubstr("no column 'arr_delay'"));
  EXPECT_FALSE(parser.Open(std::string(70, ','), error_));
  EXPECT_THAT(error_, HasSubstr("71 columns"));
}

TEST(FieldKeyTest, EqualTextsOfDifferentFieldsHaveDifferentKeys) {
  std::set<uint64_t> keys;
  for (size_t field = 0; field < kFieldCount; ++field) {
    keys.insert(FieldKey(static_cast<Field>(field), "1"));
    keys.insert(FieldKey(static_cast<Field>(field), ""));
  }
  EXPECT_EQ(keys.size(), 2 * kFieldCount);
}

TEST(FieldKeyTest, NeverChanges) {
  EXPECT_EQ(FieldKey(kCarrier, "UA"), 0x12ac5fbfb1056cbdULL);
}

}  // namespace
}  // namespace flights
