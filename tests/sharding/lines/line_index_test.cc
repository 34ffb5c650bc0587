#include "sharding/lines/line_index.h"

#include <algorithm>
#include <string>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<LineIndex> Index(std::string_view text, HeaderLine header, uint32_t stride,
                                size_t chunk_bytes) {
  LineIndexBuilder builder("data.csv", header, stride);
  for (size_t at = 0; at < text.size(); at += chunk_bytes) {
    absl::Status status = builder.Append(ScanChunk(at, text.substr(at, chunk_bytes)));
    if (!status.ok()) return status;
  }
  return builder.Finish();
}

TEST(LineIndexTest, LinesHeadersAndEnds) {
  struct Case {
    std::string_view text;
    HeaderLine header;
    uint64_t records;
    std::vector<uint64_t> starts;  // every 2nd record
  };
  const std::vector<Case> cases = {
      {"", HeaderLine::kNone, 0, {}},
      {"", HeaderLine::kPresent, 0, {}},
      {"h", HeaderLine::kPresent, 0, {}},
      {"h\n", HeaderLine::kPresent, 0, {}},
      {"a", HeaderLine::kNone, 1, {0}},
      {"a\n", HeaderLine::kNone, 1, {0}},
      {"a\nb\nc", HeaderLine::kNone, 3, {0, 4}},
      {"a\nb\nc\n", HeaderLine::kNone, 3, {0, 4}},
      {"h\na\nb\nc", HeaderLine::kPresent, 3, {2, 6}},
      {"h\na\nb\n", HeaderLine::kPresent, 2, {2}},
      {"\n\n\n", HeaderLine::kNone, 3, {0, 2}},
      {"h\r\na\r\nb\r\nc\r\n", HeaderLine::kPresent, 3, {3, 9}},
  };
  for (const Case& c : cases) {
    for (const size_t chunk : {1, 2, 3, 100}) {
      MUSTER_ASSERT_OK_AND_ASSIGN(const LineIndex index, Index(c.text, c.header, 2, chunk));
      EXPECT_EQ(index.record_count, c.records) << c.text << " in chunks of " << chunk;
      EXPECT_EQ(index.starts, c.starts) << c.text << " in chunks of " << chunk;
      EXPECT_EQ(index.file_bytes, c.text.size());
    }
  }
}

TEST(LineIndexTest, EqualsAPlainSplitOverRandomTexts) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    std::string text;
    const uint64_t bytes = rng.Below(200);
    for (uint64_t i = 0; i < bytes; ++i) text += rng.Below(5) == 0 ? '\n' : 'x';
    const auto header = rng.Below(2) == 0 ? HeaderLine::kNone : HeaderLine::kPresent;
    const auto stride = static_cast<uint32_t>(1 + rng.Below(7));

    std::vector<uint64_t> records;
    for (size_t at = 0; at < text.size();) {
      records.push_back(at);
      const size_t newline = text.find('\n', at);
      at = newline == std::string::npos ? text.size() : newline + 1;
    }
    if (header == HeaderLine::kPresent && !records.empty()) records.erase(records.begin());
    std::vector<uint64_t> starts;
    for (size_t i = 0; i < records.size(); i += stride) starts.push_back(records[i]);

    MUSTER_ASSERT_OK_AND_ASSIGN(const LineIndex index,
                                Index(text, header, stride, 1 + rng.Below(60)));
    ASSERT_EQ(index.record_count, records.size()) << "seed " << seed;
    ASSERT_EQ(index.starts, starts) << "seed " << seed;
  }
}

TEST(LineIndexTest, ALineOverTheLimitIsAnErrorWithFileAndLine) {
  std::string text = "h\nshort\n" + std::string(kRecordBytesMax - 1, 'x') + "\nlast";
  constexpr size_t kChunk = size_t{4} << 20;
  MUSTER_ASSERT_OK_AND_ASSIGN(const LineIndex index, Index(text, HeaderLine::kPresent, 1, kChunk));
  EXPECT_EQ(index.record_count, 3u);

  text.insert(100, "x");  // one byte over, newline included
  EXPECT_THAT(Index(text, HeaderLine::kPresent, 1, kChunk),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("data.csv:3:"), HasSubstr("16 MiB"))));
  // Without a newline to end it, at the end of the file and before it.
  EXPECT_THAT(Index("a\n" + std::string(kRecordBytesMax + 1, 'x'), HeaderLine::kNone, 1, kChunk),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("data.csv:2:")));
}

TEST(LineIndexTest, ChunksScanTheSameInAnyOrder) {
  EXPECT_THAT(ScanChunk(100, "ab\ncd\n\ne").line_ends, ElementsAre(3, 6, 7));
  EXPECT_EQ(ScanChunk(100, "ab\ncd\n\ne").begin, 100u);
  EXPECT_THAT(ScanChunk(0, "abc").line_ends, IsEmpty());
}

}  // namespace
}  // namespace muster
