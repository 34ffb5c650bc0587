#include "master/service/snapshot_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

class SnapshotOwnerTest : public ::testing::Test {
 protected:
  void AddSnapshot(const std::string& name) {
    std::filesystem::create_directories(
        std::filesystem::path(directory_ + "/" + name).parent_path());
    ASSERT_THAT(WriteFileAtomically(directory_ + "/" + name, "x"), IsOk());
  }

  testing::TempDir folder_;
  const std::string directory_ = folder_.File("a/snapshots");
  const std::unique_ptr<ObjectStore> store_ = OpenDirectoryStore(directory_);
  const SnapshotOwner flights_{"id-1", "flights", "/jobs/flights"};
  const SnapshotOwner trains_{"id-2", "trains", "/jobs/trains"};
};

TEST_F(SnapshotOwnerTest, WhatMayBeOtherwiseLaterIsNoRefusal) {
  EXPECT_TRUE(IsOnlyUnseen(absl::UnavailableError("away")));
  EXPECT_TRUE(IsOnlyUnseen(absl::PermissionDeniedError("the session token has expired")));
  EXPECT_FALSE(IsOnlyUnseen(absl::FailedPreconditionError("another job's")));
  EXPECT_FALSE(IsOnlyUnseen(absl::OkStatus()));
}

TEST_F(SnapshotOwnerTest, TheFirstJobHasItAndTheSecondIsRefused) {
  EXPECT_THAT(CheckSnapshotDirectory(store_.get(), trains_, {}), IsOk());
  EXPECT_FALSE(std::filesystem::exists(directory_)) << "a check creates nothing";
  ASSERT_THAT(ClaimSnapshotDirectory(store_.get(), flights_, {}), IsOk());
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), flights_, {}), IsOk()) << "again";
  const auto refused = StatusIs(
      absl::StatusCode::kFailedPrecondition,
      AllOf(HasSubstr(directory_), HasSubstr("'flights' with the state directory /jobs/flights"),
            HasSubstr("'trains' with the state directory /jobs/trains"),
            HasSubstr("another spec.snapshots.directory")));
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), trains_, {}), refused);
  EXPECT_THAT(CheckSnapshotDirectory(store_.get(), trains_, {}), refused);
  SnapshotOwner renewed = flights_;
  renewed.job_id = "";
  renewed.state_directory = "/jobs/other";
  EXPECT_THAT(CheckSnapshotDirectory(store_.get(), renewed, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another")))
      << "the same name, but another job";
}

TEST_F(SnapshotOwnerTest, AJobWhoseJournalIsGoneIsToldSoAndNotToDeleteItsWeights) {
  ASSERT_THAT(ClaimSnapshotDirectory(store_.get(), flights_, {}), IsOk());
  SnapshotOwner renewed = flights_;
  for (const std::string id : {"", "id-9"}) {
    renewed.job_id = id;
    const absl::Status status = CheckSnapshotDirectory(store_.get(), renewed, {});
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("the journal of the job 'flights' is missing"),
                                       HasSubstr("/jobs/flights/journal"), HasSubstr(directory_))));
    EXPECT_EQ(status.message().find("another job"), std::string::npos);
    EXPECT_EQ(status.message().find("delete the folder"), std::string::npos);
  }
}

TEST_F(SnapshotOwnerTest, ACopyOfAStateDirectoryWithoutItsJournalIsNoOtherJob) {
  ASSERT_THAT(ClaimSnapshotDirectory(store_.get(), flights_, {}), IsOk());
  SnapshotOwner copied = flights_;
  copied.job_id = "id-9";
  copied.state_directory = folder_.File("a");
  const absl::Status status = CheckSnapshotDirectory(store_.get(), copied, {});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("the journal of the job 'flights' is missing from " +
                                               copied.state_directory),
                                     HasSubstr("Nothing has been deleted"))));
  EXPECT_EQ(status.message().find("delete the folder"), std::string::npos);
}

TEST_F(SnapshotOwnerTest, FilesWithoutAMarkerBelongToTheJobThatKnowsThem) {
  AddSnapshot("p0/1.sst");
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), trains_, {"p0/2.sst"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("does not know the snapshots"), HasSubstr("p0/1.sst"))));
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), flights_, {"p0/1.sst"}), IsOk());
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), trains_, {"p0/1.sst"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'flights'")));
}

TEST_F(SnapshotOwnerTest, WhatLiesInTheStateDirectoryIsItsOwn) {
  AddSnapshot("p0/1.sst");
  SnapshotOwner here = trains_;
  here.state_directory = folder_.File("b");
  EXPECT_THAT(CheckSnapshotDirectory(store_.get(), here, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another")));
  here.state_directory = folder_.File("a");
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), here, {}), IsOk());
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), flights_, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'trains'")));
}

TEST_F(SnapshotOwnerTest, OtherFilesAreNobodysSnapshots) {
  AddSnapshot("notes.txt");
  EXPECT_THAT(ClaimSnapshotDirectory(store_.get(), flights_, {}), IsOk());
  AddSnapshot("OWNER");  // one "x"
  EXPECT_THAT(CheckSnapshotDirectory(store_.get(), flights_, {}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("OWNER")));
}

}  // namespace
}  // namespace muster
