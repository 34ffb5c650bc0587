#include "scaler/history/json_number.h"

#include <gtest/gtest.h>

namespace muster::scaler {
namespace {

using Json = nlohmann::json;

TEST(JsonNumberTest, WholeNumbersThatFit) {
  EXPECT_EQ(WholeNumber<uint32_t>(Json::parse("4294967295")), 4294967295u);
  EXPECT_EQ(WholeNumber<uint64_t>(Json::parse("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(WholeNumber<int64_t>(Json::parse("-5")), -5);
  EXPECT_EQ(WholeNumber<int64_t>(Json::parse("5")), 5);
}

TEST(JsonNumberTest, EverythingElseThrows) {
  for (const char* text : {"-1", "1.5", "1e3", "4294967296", "\"7\"", "null", "[]", "true"}) {
    EXPECT_THROW(WholeNumber<uint32_t>(Json::parse(text)), Json::exception) << text;
  }
  EXPECT_THROW(WholeNumber<int64_t>(Json::parse("9223372036854775808")), Json::exception);
  EXPECT_THROW(WholeNumber<int64_t>(Json::parse("-1e30")), Json::exception);
}

}  // namespace
}  // namespace muster::scaler
