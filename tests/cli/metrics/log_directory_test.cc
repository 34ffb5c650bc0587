#include "cli/metrics/log_directory.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/file.h"
#include "tests/cli/metrics/event_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr WallTime kNow{5'000'000};
const Point kFirst{"auc", 1, 1.5, 0.5};
const Point kSecond{"auc", 2, 2.5, 0.625};
const Point kThird{"auc", 3, 3.5, 0.75};

class LogDirectoryTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.File("logs"); }
  absl::StatusOr<uint64_t> Add(const PointsOfDatasets& points, const std::string& writer = "me") {
    MUSTER_ASSIGN_OR_RETURN(LogDirectory logs, LogDirectory::Open(path(), writer));
    return logs.Add(points, kNow);
  }
  std::string FileOf(const std::string& dataset) const {
    return path() + "/" + dataset + "/events.out.tfevents.muster";
  }
  /// The steps in a file; empty if any of its bytes is not as it must be.
  std::vector<uint64_t> Steps(const std::string& dataset) const {
    const auto events = ReadEvents(ReadFile(FileOf(dataset), 1 << 20).value());
    std::vector<uint64_t> steps;
    for (const ReadEvent& event : events.value_or(std::vector<ReadEvent>())) {
      if (event.value) steps.push_back(event.step);
    }
    return steps;
  }

  testing::TempDir folder_;
};

TEST_F(LogDirectoryTest, EachDatasetHasAFile) {
  EXPECT_EQ(Add({{"train", {kFirst, kSecond}}, {"test", {kFirst}}}).value(), 3u);
  EXPECT_THAT(Steps("train"), ElementsAre(1, 2));
  EXPECT_THAT(Steps("test"), ElementsAre(1));
}

TEST_F(LogDirectoryTest, WhatIsThereIsNotWrittenAgain) {
  EXPECT_EQ(Add({{"train", {kFirst}}}).value(), 1u);
  const std::string before = ReadFile(FileOf("train"), 1 << 20).value();
  EXPECT_EQ(Add({{"train", {kFirst}}}).value(), 0u);
  EXPECT_EQ(ReadFile(FileOf("train"), 1 << 20).value(), before);
  EXPECT_EQ(Add({{"train", {kFirst, kSecond, kThird}}}).value(), 2u);
  EXPECT_THAT(Steps("train"), ElementsAre(1, 2, 3));
  EXPECT_THAT(ReadFile(FileOf("train"), 1 << 20).value(), ::testing::StartsWith(before))
      << "a reader that has the file open reads on";
}

/// A kill may leave any beginning of what was to be written.
TEST_F(LogDirectoryTest, AKillAnywhereNeitherLosesNorDoublesAPoint) {
  ASSERT_THAT(Add({{"train", {kFirst, kSecond, kThird}}}), IsOk());
  const std::string whole = ReadFile(FileOf("train"), 1 << 20).value();
  for (size_t size = 0; size < whole.size(); size += 3) {
    std::ofstream(FileOf("train"), std::ios::binary) << whole.substr(0, size);
    ASSERT_THAT(Add({{"train", {kFirst, kSecond, kThird}}}), IsOk());
    ASSERT_EQ(ReadFile(FileOf("train"), 1 << 20).value(), whole) << size;
  }
}

TEST_F(LogDirectoryTest, ATornRecordGoesAwayAlsoWhenNothingIsMissing) {
  ASSERT_THAT(Add({{"train", {kFirst}}}), IsOk());
  const std::string whole = ReadFile(FileOf("train"), 1 << 20).value();
  ASSERT_THAT(WriteFileAtomically(FileOf("train"), whole + "torn"), IsOk());
  EXPECT_EQ(Add({{"train", {kFirst}}}).value(), 0u);
  EXPECT_EQ(ReadFile(FileOf("train"), 1 << 20).value(), whole);
}

TEST_F(LogDirectoryTest, FilesOfAnotherJobAreNotTouched) {
  ASSERT_THAT(Add({{"train", {kFirst}}}, "muster one 1"), IsOk());
  EXPECT_THAT(Add({{"train", {kSecond}}}, "muster one 2").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("muster one 1")));
  EXPECT_THAT(Steps("train"), ElementsAre(1));
}

TEST_F(LogDirectoryTest, OneProcessWritesAtATime) {
  const auto first = LogDirectory::Open(path(), "me");
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(LogDirectory::Open(path(), "me").status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path())));
}

}  // namespace
}  // namespace muster::metrics
