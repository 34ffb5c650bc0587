#include "master/sources/lines/finished_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

class FinishedSourcesTest : public ::testing::Test {
 protected:
  FinishedSourcesTest() {
    for (const char* name : {"a", "b", "c"}) {
      files_.push_back(folder_.File(name));
      EXPECT_THAT(WriteFileAtomically(files_.back(), std::string(name) + "\n2\n3\n"), IsOk());
    }
    for (const auto& stamp : StampFiles(files_, 1)) stamps_.push_back(*stamp);
    sources_ = *IndexFiles(files_, {.stride = 1}, {});
    EXPECT_THAT(WriteFinished(path_, parameters_, sources_, stamps_), IsOk());
  }
  auto Read() { return ReadFinished(path_, parameters_, files_, stamps_); }

  testing::TempDir folder_;
  const std::string path_ = folder_.File("train.idx");
  IndexParameters parameters_{.minibatch_size = 2, .minibatches_per_shard = 1};
  std::vector<std::string> files_;
  std::vector<FileStamp> stamps_;
  std::vector<SourceIndex> sources_;
};

TEST_F(FinishedSourcesTest, WhatWasFinishedIsAsItWas) {
  const auto found = Read();
  ASSERT_THAT(found, SizeIs(3));
  const SourceIndex& b = found.at(files_[1]);
  EXPECT_EQ(b.path, files_[1]);
  EXPECT_EQ(b.pin, sources_[1].pin);
  EXPECT_EQ(b.lines.file_bytes, 6u);
  EXPECT_EQ(b.lines.record_count, 3u);
  EXPECT_THAT(b.lines.starts, ElementsAre(0, 2, 4));
}

TEST_F(FinishedSourcesTest, AFileThatLooksOtherwiseIsNotFinished) {
  stamps_[1].changed_ns += 1;
  const auto found = Read();
  EXPECT_THAT(found, SizeIs(2));
  EXPECT_FALSE(found.contains(files_[1]));
}

TEST_F(FinishedSourcesTest, AnotherCutOrDamageMeansNothingIsFinished) {
  parameters_.minibatch_size = 3;
  EXPECT_THAT(Read(), IsEmpty());
  parameters_.minibatch_size = 2;
  // As a crash between the two files leaves them: more sources than stamps.
  const std::vector<FileStamp> fewer(stamps_.begin(), stamps_.end() - 1);
  ASSERT_THAT(WriteFileStamps(path_ + ".seen.part", fewer), IsOk());
  EXPECT_THAT(Read(), IsEmpty());
  ASSERT_THAT(WriteFileAtomically(path_ + ".part", "damaged"), IsOk());
  EXPECT_THAT(Read(), IsEmpty());
}

TEST_F(FinishedSourcesTest, RemovedWithoutATrace) {
  RemoveFinished(path_);
  EXPECT_THAT(Read(), IsEmpty());
  RemoveFinished(path_);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 3);
}

}  // namespace
}  // namespace muster
