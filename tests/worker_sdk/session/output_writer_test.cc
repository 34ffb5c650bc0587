#include "worker_sdk/session/output_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;

class OutputWriterTest : public ::testing::Test {
 protected:
  std::string Read(const std::string& name) {
    return ReadFile(place_ + "/" + name, 1'000).value_or("unreadable");
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(place_)) {
      names.push_back(file.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  testing::TempDir dir_;
  const std::string place_ = dir_.File("new/outputs");
};

TEST_F(OutputWriterTest, TheFirstRunOfAShardCounts) {
  OutputWriter one("job"), other("job");
  EXPECT_THAT(one.Write(place_, "a-0.out", "first"), IsOk());
  EXPECT_THAT(one.Write(place_, "a-0.out", "second"), IsOk());
  EXPECT_THAT(other.Write(place_, "a-0.out", "third"), IsOk());
  EXPECT_EQ(Read("a-0.out"), "first");
  EXPECT_THAT(Names(), ElementsAre("a-0.out", "muster-job"));
}

TEST_F(OutputWriterTest, APlaceBelongsToOneJob) {
  OutputWriter one("one"), two("two");
  EXPECT_THAT(one.Write(place_, "a-0.out", "x"), IsOk());
  const absl::Status refused = two.Write(place_, "a-1.out", "y");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has the outputs of another job"));
  EXPECT_THAT(two.Write(dir_.File("another"), "a-1.out", "y"), IsOk());
  EXPECT_THAT(Names(), ElementsAre("a-0.out", "muster-job"));
}

TEST_F(OutputWriterTest, WhatKilledWritersLeaveIsRemovedAndNothingElse) {
  OutputWriter writer("job");
  EXPECT_THAT(writer.Write(place_, "a-0.npy", "x"), IsOk());
  const std::string on_the_way = ".0123456789abcdef";
  for (const std::string& left :
       {"a-00000001.npy" + on_the_way + ".tmp.7", "a-b-123456789.parquet" + on_the_way,
        "muster-job" + on_the_way, "mine" + on_the_way, "mine.txt" + on_the_way,
        "mine-1.txt" + on_the_way, std::string("mine.tar.0123")}) {
    ASSERT_THAT(WriteFileAtomically(place_ + "/" + left, "x"), IsOk());
  }
  writer.RemoveUnfinished();
  EXPECT_THAT(Names(), ElementsAre("a-0.npy", "mine-1.txt" + on_the_way, "mine" + on_the_way,
                                   "mine.tar.0123", "mine.txt" + on_the_way, "muster-job"));
}

TEST_F(OutputWriterTest, APlaceThatCannotBeWrittenIsAnErrorAndMayComeBack) {
  OutputWriter writer("job");
  std::filesystem::create_directories(dir_.File("new"));
  ASSERT_THAT(WriteFileAtomically(place_, "a file"), IsOk());
  const absl::Status refused = writer.Write(place_, "a-0.out", "x");
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), HasSubstr(place_));
  std::filesystem::remove(place_);
  EXPECT_THAT(writer.Write(place_, "a-0.out", "x"), IsOk());
  EXPECT_EQ(Read("a-0.out"), "x");
}

}  // namespace
}  // namespace muster::internal
