#include "master/sources/lines/index_file.h"

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;

constexpr IndexParameters kParameters = {
    .minibatch_size = 64, .minibatches_per_shard = 3, .has_header = true};

std::vector<SourceIndex> Sources() {
  return {{"/data/a", {100, 0xabc}, {100, 8, {5, 30, 60}}, 77},
          {"/data/empty", {0, 0xdef}, {0, 0, {}}},
          {"/data/b", {50, 0x123}, {50, 1, {7}}}};
}

TEST(IndexFileTest, WhatWasWrittenIsRead) {
  TempDir dir;
  ASSERT_THAT(IndexFile::Write(dir.File("x.idx"), kParameters, Sources()), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(IndexFile opened, IndexFile::Open(dir.File("x.idx")));
  const auto file = std::make_unique<IndexFile>(std::move(opened));  // views survive a move
  EXPECT_EQ(file->parameters(), kParameters);
  ASSERT_EQ(file->sources().size(), 3u);
  EXPECT_EQ(file->sources()[0].path, "/data/a");
  EXPECT_EQ(file->sources()[2].path, "/data/b");
  EXPECT_EQ(file->sources()[2].pin, (SourcePin{50, 0x123}));
  EXPECT_EQ(file->sources()[0].record_count, 8u);
  EXPECT_EQ(file->sources()[0].header, 77u);
  EXPECT_EQ(file->sources()[2].first_start, 3u);
  EXPECT_THAT(file->StartsOf(0), ::testing::ElementsAre(5, 30, 60));
}

TEST(IndexFileTest, ARunLiesInItsBlocks) {
  TempDir dir;
  ASSERT_THAT(IndexFile::Write(dir.File("x.idx"), kParameters, Sources()), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const IndexFile file, IndexFile::Open(dir.File("x.idx")));
  ASSERT_EQ(file.parameters().Stride(), 3u);
  EXPECT_EQ(file.Locate({0, 0, 3}),
            (SourceRun{.record_count = 3, .byte_begin = 5, .byte_end = 30}));
  EXPECT_EQ(file.Locate({0, 2, 2}), (SourceRun{.first_record = 2,
                                               .record_count = 2,
                                               .byte_begin = 5,
                                               .byte_end = 60,
                                               .records_before = 2,
                                               .records_behind = 2}));
  // The last block of a source ends with it.
  EXPECT_EQ(file.Locate({0, 6, 1}), (SourceRun{.first_record = 6,
                                               .record_count = 1,
                                               .byte_begin = 60,
                                               .byte_end = 100,
                                               .records_behind = 1}));
  EXPECT_EQ(file.Locate({2, 0, 1}),
            (SourceRun{.record_count = 1, .byte_begin = 7, .byte_end = 50}));
}

TEST(IndexFileTest, AnIndexOfAnEarlierVersionSaysWhatToDo) {
  TempDir dir;
  ASSERT_THAT(IndexFile::Write(dir.File("x.idx"), kParameters, Sources()), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(dir.File("x.idx"), 1 << 20));
  bytes[8] = 1;
  ASSERT_THAT(WriteFileAtomically(dir.File("x.idx"), bytes), IsOk());
  EXPECT_THAT(IndexFile::Open(dir.File("x.idx")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Muster before 0.3")));
}

TEST(IndexFileTest, EveryDamagedByteAndEveryCutIsFound) {
  TempDir dir;
  ASSERT_THAT(IndexFile::Write(dir.File("x.idx"), kParameters, Sources()), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(dir.File("x.idx"), 1 << 20));
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    ASSERT_THAT(WriteFileAtomically(dir.File("bad"), bad), IsOk());
    ASSERT_THAT(IndexFile::Open(dir.File("bad")),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bad")))
        << "byte " << at;
    ASSERT_THAT(WriteFileAtomically(dir.File("bad"), good.substr(0, at)), IsOk());
    ASSERT_FALSE(IndexFile::Open(dir.File("bad")).ok()) << "cut at " << at;
  }
  EXPECT_THAT(IndexFile::Open(dir.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

}  // namespace
}  // namespace muster
