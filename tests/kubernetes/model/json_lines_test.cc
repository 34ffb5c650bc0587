#include "kubernetes/model/json_lines.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using ::testing::_;

TEST(JsonLines, AnyCutGivesTheSameLines) {
  const std::string stream = "{\"a\":1}\n\n[2]\n\"x\"\nrest";
  for (size_t cut = 1; cut < stream.size(); ++cut) {
    JsonLines lines(100);
    std::vector<std::string> seen;
    const auto see = [&](const nlohmann::json& line) {
      seen.push_back(line.dump());
      return absl::OkStatus();
    };
    for (size_t at = 0; at < stream.size(); at += cut) {
      ASSERT_THAT(lines.Append(std::string_view(stream).substr(at, cut), see), testing::IsOk());
    }
    EXPECT_THAT(seen, ::testing::ElementsAre("{\"a\":1}", "[2]", "\"x\"")) << cut;
    EXPECT_TRUE(lines.IsInsideLine());
  }
}

TEST(JsonLines, Limits) {
  const auto ignore = [](const nlohmann::json&) { return absl::OkStatus(); };
  JsonLines exact(4);
  EXPECT_THAT(exact.Append("1234\n", ignore), testing::IsOk());
  EXPECT_FALSE(exact.IsInsideLine());
  EXPECT_THAT(exact.Append("1234", ignore), testing::IsOk());
  EXPECT_THAT(exact.Append("5", ignore),
              testing::StatusIs(absl::StatusCode::kResourceExhausted, _));
  JsonLines whole(4);
  EXPECT_THAT(whole.Append("12345\n", ignore),
              testing::StatusIs(absl::StatusCode::kResourceExhausted, _));
}

TEST(JsonLines, StopsAtTheFirstError) {
  int calls = 0;
  const auto refuse = [&](const nlohmann::json&) {
    ++calls;
    return absl::AbortedError("enough");
  };
  JsonLines lines(100);
  EXPECT_THAT(lines.Append("1\n2\n", refuse), testing::StatusIs(absl::StatusCode::kAborted, _));
  EXPECT_EQ(calls, 1);
  JsonLines bad(100);
  EXPECT_THAT(bad.Append("{\n", refuse), testing::StatusIs(absl::StatusCode::kInvalidArgument, _));
}

}  // namespace
}  // namespace muster::kubernetes
