#include "job/file/scalars.h"

#include <limits>

#include "tests/support/status_matchers.h"

namespace muster::job_file {
namespace {

using ::muster::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(ScalarsTest, Durations) {
  const std::pair<std::string_view, int64_t> cases[] = {
      {"500ms", 500},       {"10s", 10'000},
      {"2m", 120'000},      {"1h", 3'600'000},
      {"1.5s", 1500},       {"0s", 0},
      {"1h30m", 5'400'000}, {"0.25s", 250},
      {"1m0.5s", 60'500},   {"8760h", 31'536'000'000},
  };
  for (const auto& [text, expected] : cases) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const milliseconds duration, ParseDuration(text));
    EXPECT_EQ(duration.count(), expected) << text;
  }
  const std::pair<std::string_view, std::string> bad[] = {
      {"", "empty"},        {"10", "unit is missing"}, {"s", "number is missing"},
      {"10 s", "' s'"},     {"-1s", "number is"},      {"1d", "'d' is not one of"},
      {"0.1ms", "whole"},   {"8761h", "year"},         {"1.2.3s", "number is"},
      {".5s", "number is"}, {"1e3s", "'e'"},           {"9999999999999999999999999s", "number"},
  };
  for (const auto& [text, what] : bad) {
    EXPECT_THAT(ParseDuration(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << text;
  }
}

TEST(ScalarsTest, Memory) {
  const std::pair<std::string_view, uint64_t> cases[] = {
      {"256Mi", 256u << 20}, {"1Gi", 1u << 30},   {"1.5Gi", 3u << 29},
      {"1024", 1024},        {"10k", 10'000},     {"2G", 2'000'000'000u},
      {"4Ki", 4096},         {"1Ti", 1ull << 40}, {"1T", 1'000'000'000'000u},
      {"3M", 3'000'000},
  };
  for (const auto& [text, expected] : cases) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t bytes, ParseMemory(text));
    EXPECT_EQ(bytes, expected) << text;
  }
  for (const std::string_view text : {"", "Mi", "1mb", "1 Gi", "-1Gi", "1GiB", "999999999999Ti"}) {
    EXPECT_FALSE(ParseMemory(text).ok()) << text;
  }
}

TEST(ScalarsTest, Cores) {
  const std::pair<std::string_view, double> cases[] = {
      {"1", 1}, {"0.5", 0.5}, {"500m", 0.5}, {"16", 16}, {"1500m", 1.5}};
  for (const auto& [text, expected] : cases) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const double cores, ParseCpu(text));
    EXPECT_DOUBLE_EQ(cores, expected) << text;
  }
  for (const std::string_view text : {"", "m", "1 core", "-1", "1k", "nan"}) {
    EXPECT_FALSE(ParseCpu(text).ok()) << text;
  }
}

TEST(ScalarsTest, WholeNumbersAndBooleans) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const double ratio, ParseNumber("1.5"));
  EXPECT_EQ(ratio, 1.5);
  for (const char* text : {"", "1,5", "-1", "1e3", "1.5x", ".5", "nan"}) {
    EXPECT_FALSE(ParseNumber(text).ok()) << text;
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t largest, ParseWhole("18446744073709551615"));
  EXPECT_EQ(largest, std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(ParseWhole("18446744073709551616"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too large")));
  for (const std::string_view text : {"", "-1", "+1", "1.0", "0x10", "1_000", " 1", "1e3"}) {
    EXPECT_FALSE(ParseWhole(text).ok()) << text;
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const bool yes, ParseBool("true"));
  EXPECT_TRUE(yes);
  MUSTER_ASSERT_OK_AND_ASSIGN(const bool no, ParseBool("false"));
  EXPECT_FALSE(no);
  for (const std::string_view text : {"", "yes", "True", "1"}) EXPECT_FALSE(ParseBool(text).ok());
}

TEST(ScalarsTest, FormattedValuesParseBack) {
  for (const int64_t ms : {0, 1, 999, 1000, 1500, 60'000, 90'000, 3'600'000, 5'400'000}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const milliseconds back,
                                ParseDuration(FormatDuration(milliseconds(ms))));
    EXPECT_EQ(back.count(), ms);
  }
  EXPECT_EQ(FormatDuration(milliseconds(120'000)), "2m");
  for (const uint64_t bytes : {0ull, 1ull, 1024ull, 1000ull, 256ull << 20, 64ull << 40}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const uint64_t back, ParseMemory(FormatMemory(bytes)));
    EXPECT_EQ(back, bytes);
  }
  EXPECT_EQ(FormatMemory(256 << 20), "256Mi");
}

}  // namespace
}  // namespace muster::job_file
