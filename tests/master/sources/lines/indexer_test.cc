#include "master/sources/lines/indexer.h"

#include <string>

#include "base/file.h"
#include "base/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string RandomLines(uint64_t seed, int lines) {
  Rng rng(seed);
  std::string text;
  for (int i = 0; i < lines; ++i) text += std::string(rng.Below(90), 'x') + "\n";
  return text;
}

TEST(IndexerTest, EqualsASequentialScanWhateverThreadsAndChunks) {
  TempDir dir;
  std::vector<std::string> paths;
  std::vector<LineIndex> expected;
  for (int file = 0; file < 5; ++file) {
    const std::string text = file == 3 ? "" : RandomLines(file + 1, 700 * file + 1);
    paths.push_back(dir.File(std::to_string(file)));
    ASSERT_THAT(WriteFileAtomically(paths.back(), text), IsOk());
    LineIndexBuilder builder("x", HeaderLine::kPresent, 10);
    ASSERT_THAT(builder.Append(ScanChunk(0, text)), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(LineIndex index, builder.Finish());
    expected.push_back(std::move(index));
  }
  for (const uint32_t threads : {1, 2, 7}) {
    for (const uint32_t chunk : {97, 4096, 1 << 20}) {
      IndexProgress last;
      const auto progress = [&last](const IndexProgress& at) { last = at; };
      MUSTER_ASSERT_OK_AND_ASSIGN(const auto sources, IndexFiles(paths,
                                                                 {.header = HeaderLine::kPresent,
                                                                  .stride = 10,
                                                                  .threads = threads,
                                                                  .chunk_bytes = chunk},
                                                                 progress));
      ASSERT_EQ(sources.size(), 5u);
      uint64_t bytes = 0;
      for (int file = 0; file < 5; ++file) {
        EXPECT_EQ(sources[file].path, paths[file]);
        EXPECT_EQ(sources[file].lines.record_count, expected[file].record_count);
        EXPECT_EQ(sources[file].lines.starts, expected[file].starts);
        EXPECT_EQ(sources[file].pin.bytes, expected[file].file_bytes);
        bytes += expected[file].file_bytes;
      }
      EXPECT_EQ(last.bytes_total, bytes);
      EXPECT_EQ(last.bytes_done, bytes);
    }
  }
}

TEST(IndexerTest, TheErrorIsThatOfTheFirstBadFile) {
  TempDir dir;
  std::vector<std::string> paths;
  const std::string too_long = "ok\n" + std::string(kRecordBytesMax + 1, 'x') + "\n";
  for (const char* name : {"good", "bad1", "bad2"}) {
    paths.push_back(dir.File(name));
    ASSERT_THAT(WriteFileAtomically(paths.back(), paths.size() == 1 ? "a\n" : too_long), IsOk());
  }
  for (int run = 0; run < 5; ++run) {
    EXPECT_THAT(IndexFiles(paths, {.threads = 4, .chunk_bytes = 1 << 20}, nullptr),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bad1:2:")));
  }
  EXPECT_THAT(IndexFiles({dir.File("good"), dir.File("gone")}, {}, nullptr),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone")));
}

TEST(IndexerTest, PinsComeInTheOrderOfTheFiles) {
  TempDir dir;
  std::vector<std::string> paths;
  for (int i = 0; i < 20; ++i) {
    paths.push_back(dir.File(std::to_string(i)));
    ASSERT_THAT(WriteFileAtomically(paths.back(), std::string(i, 'x')), IsOk());
  }
  paths.push_back(dir.File("gone"));
  const auto pins = PinFiles(paths, 4);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pins[i]->bytes, static_cast<uint64_t>(i));
  EXPECT_THAT(pins[20], StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone")));
}

}  // namespace
}  // namespace muster
