#include "cli/verify/verify_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::verify {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

TEST(CheckOptionsTest, EveryServerNeedsAPartition) {
  EXPECT_THAT(CheckOptions({}), IsOk());
  EXPECT_THAT(CheckOptions({.servers = 3, .partitions = 3}), IsOk());
  EXPECT_THAT(CheckOptions({.servers = 3, .partitions = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--partitions 2"), HasSubstr("--servers 3"))));
}

TEST(WorkersOfTest, MoreInAGroup) {
  EXPECT_EQ(WorkersOf({}), 2u);
  EXPECT_EQ(WorkersOf({.kind = JobKind::kGroup}), 3u);
  EXPECT_EQ(WorkersOf({.kind = JobKind::kGroup, .workers = 5}), 5u);
}

TEST(WorkerTest, BesideTheProgramOrInLibexec) {
  EXPECT_THAT(WorkerPlaces("/opt/m/bin/muster"),
              ElementsAre("/opt/m/bin/verify_worker", "/opt/m/libexec/muster/verify_worker"));
}

TEST(WorkerTest, TheFirstThatCanBeExecuted) {
  const TempDir folder;
  const std::string first = folder.File("first");
  const std::string second = folder.File("second");
  const auto found = [&] { return FindWorker({first, second}); };
  EXPECT_THAT(found(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("--trainer"))));
  std::ofstream(first) << "no program";
  std::ofstream(second) << "#!/bin/sh\n";
  std::filesystem::permissions(first, std::filesystem::perms::owner_read);
  std::filesystem::permissions(second, std::filesystem::perms::owner_all);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string worker, found());
  EXPECT_EQ(worker, second);
  EXPECT_FALSE(FindWorker({folder.path()}).ok()) << "a folder";
}

}  // namespace
}  // namespace muster::verify
