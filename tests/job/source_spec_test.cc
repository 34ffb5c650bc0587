#include "job/source_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(SourceSpecTest, ABoundIsWrittenAsAJobFileSaysIt) {
  using Kind = StreamBound::Kind;
  const std::pair<StreamBound, std::string> cases[] = {
      {{.kind = Kind::kEarliest, .time = {}, .offsets = {}}, "earliest"},
      {{.kind = Kind::kLatest, .time = {}, .offsets = {}}, "latest"},
      {{.kind = Kind::kNever, .time = {}, .offsets = {}}, "never"},
      {{.kind = Kind::kNow, .time = {}, .offsets = {}}, "now"},
      {{.kind = Kind::kTime, .time = std::chrono::milliseconds(86'400'005), .offsets = {}},
       "1970-01-02T00:00:00.005Z"},
      {{.kind = Kind::kOffsets, .time = {}, .offsets = {{0, 5}, {3, 7}}}, "{0: 5, 3: 7}"},
      {{.kind = Kind::kOffsets, .time = {}, .offsets = {}}, "{}"},
  };
  for (const auto& [bound, text] : cases) EXPECT_EQ(ToString(bound), text);
}

TEST(SourceSpecTest, FilesMayMoveAndOthersMayNotChange) {
  EXPECT_THAT(FixedFields(SourceSpec(LinesSpec{.files = {"a"}, .header = true})), IsEmpty());
  EXPECT_THAT(FixedFields(SourceSpec(TopicSpec())), SizeIs(3));
  EXPECT_THAT(FixedFields(SourceSpec(RangeSpec{.records = 12})),
              ElementsAre(Pair("records", "12")));
}

TEST(SourceSpecTest, OnlyFilesHaveAHeader) {
  EXPECT_TRUE(HasHeader(LinesSpec{.files = {"a"}, .header = true}));
  EXPECT_FALSE(HasHeader(LinesSpec{.files = {"a"}}));
  EXPECT_FALSE(HasHeader(TopicSpec()));
  EXPECT_FALSE(HasHeader(RangeSpec()));
}

}  // namespace
}  // namespace muster
