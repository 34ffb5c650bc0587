#include "master/journal/fenced_journal.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "master/journal/journal_folder.h"
#include "tests/master/journal/sample_records.h"
#include "tests/support/memory_journal.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::SampleRecords;
using testing::StatusIs;
using testing::Stored;

class FencedJournalTest : public ::testing::Test {
 protected:
  using Opened = absl::StatusOr<std::unique_ptr<Journal>>;
  Opened Open(const std::string& machine, bool take_over = false,
              const std::string& starter = "") const {
    return OpenFencedJournal(directory_, header_,
                             {.machine = machine, .starter = starter, .take_over = take_over});
  }
  static std::vector<Mutation> Done(uint64_t seq) {
    return {DoneRecord{{DoneSeq(seq), testing::SampleShard(seq), LeaseToken()}, {}, {}}};
  }
  std::string Folder(uint64_t number) const { return FolderOfGeneration(directory_, number); }
  bool Exists(const std::string& path) const { return fs::exists(path); }

  testing::TempDir folder_;
  const std::string directory_ = folder_.File("journal");
  const JournalHeader header_{"flights", {{"spec.seed", "7"}}, {}, "id-1"};
};

TEST_F(FencedJournalTest, RestartsOnOneMachineUseOneFolder) {
  for (int start = 0; start < 3; ++start) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("a"));
    EXPECT_EQ(journal->TakeState().meta.has_value(), start > 0);
    ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
  }
  EXPECT_FALSE(Exists(Folder(2)));
  EXPECT_TRUE(Exists(directory_ + "/CURRENT")) << "as in versions before the fence";
}

TEST_F(FencedJournalTest, AJournalOfAnEarlierVersionIsAdoptedInPlace) {
  fs::create_directories(directory_);
  MUSTER_ASSERT_OK_AND_ASSIGN(auto old, OpenRocksdbJournal(directory_, header_));
  ASSERT_THAT(old->Write(SampleRecords()), IsOk());
  old.reset();
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("a"));
  EXPECT_TRUE(journal->TakeState().meta.has_value());
  EXPECT_FALSE(Exists(Folder(2)));
}

TEST_F(FencedJournalTest, ASecondMasterIsRefusedByTheLock) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("a"));
  for (const char* machine : {"a", "b"}) {
    EXPECT_THAT(Open(machine).status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("--take-over")));
  }
  EXPECT_THAT(journal->Write(SampleRecords()), IsOk()) << "it is the one that lives";
}

TEST_F(FencedJournalTest, TheSuccessorHasWhatWasAcknowledgedAndTheOldOneEnds) {
  testing::MemoryJournal memory;
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto old, Open("a"));
  for (const auto& batch : {SampleRecords(), Done(70), Done(71)}) {
    ASSERT_THAT(old->Write(batch), IsOk());
    ASSERT_THAT(memory.Write(batch), IsOk());
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("b", /*take_over=*/true));
  EXPECT_EQ(Stored(journal->TakeState()), Stored(memory.state()));
  EXPECT_EQ(journal->job_id(), "id-1");
  EXPECT_THAT(old->Look(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("generation 2")));
  EXPECT_THAT(old->Write(Done(72)),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("another master has taken over")));
  ASSERT_THAT(journal->Write(Done(73)), IsOk());
  ASSERT_THAT(memory.Write(Done(73)), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const StoredJournal stored, ReadFencedJournal(directory_));
  EXPECT_EQ(Stored(stored.state), Stored(memory.state()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const JournalHeader header, ReadFencedHeader(directory_));
  EXPECT_EQ(header.job_id, "id-1");
}

TEST_F(FencedJournalTest, WithoutLocksAnotherMachineTakesTheJobByItself) {
  MUSTER_ASSERT_OK_AND_ASSIGN(auto old, Open("a"));
  ASSERT_THAT(old->Write(SampleRecords()), IsOk());
  old.reset();
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("b"));
  EXPECT_TRUE(journal->TakeState().meta.has_value());
  EXPECT_TRUE(Exists(Folder(2)));
}

TEST_F(FencedJournalTest, AnUnfinishedCopyIsNeitherReadNorContinued) {
  MUSTER_ASSERT_OK_AND_ASSIGN(auto old, Open("a"));
  ASSERT_THAT(old->Write(SampleRecords()), IsOk());
  old.reset();
  // A master has died while it copied.
  ASSERT_THAT(MakeGeneration(directory_, 2), IsOk());
  ASSERT_THAT(CloseFolder(directory_, 2), IsOk());
  ASSERT_THAT(OpenRocksdbJournal(Folder(2), header_).status(), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const StoredJournal stored, ReadFencedJournal(directory_));
  EXPECT_TRUE(stored.state.meta.has_value());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("a"));
  EXPECT_TRUE(Exists(Folder(3)));
  EXPECT_FALSE(Exists(Folder(2))) << "nobody needs it";
  EXPECT_TRUE(journal->TakeState().meta.has_value());
}

/// Takes the job over while a limit on the size of files stands in for a full disk; exits with 0
/// when that failed.
[[noreturn]] void TakeOverWithoutRoom(const std::string& directory, const JournalHeader& header) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{(1 << 20) + 100'000, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
  ::_exit(OpenFencedJournal(directory, header, {.machine = "b"}).ok() ? 2 : 0);
}

TEST_F(FencedJournalTest, AFailedCopyLeavesItsNumberButNotItsFiles) {
  MUSTER_ASSERT_OK_AND_ASSIGN(auto old, Open("a"));
  for (uint64_t i = 1; i <= 4; ++i) {
    ASSERT_THAT(old->Write(std::vector<Mutation>{
                    EventRecord{i, {}, "kind", "", std::string(900'000, 'x')}}),
                IsOk());
  }
  old.reset();
  EXPECT_EXIT(TakeOverWithoutRoom(directory_, header_), ::testing::ExitedWithCode(0), "");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(Folder(2))) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, ::testing::ElementsAre("FENCE"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("b"));
  EXPECT_TRUE(Exists(Folder(3)));
  EXPECT_EQ(journal->TakeState().events.size(), 4u);
}

TEST_F(FencedJournalTest, OnlyThePreviousGenerationStays) {
  for (int i = 0; i < 4; ++i) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open(fmt::format("machine-{}", i)));
    ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
  }
  EXPECT_FALSE(Exists(directory_ + "/CURRENT"));
  EXPECT_FALSE(Exists(Folder(2)));
  EXPECT_TRUE(Exists(Folder(3)));
  EXPECT_TRUE(Exists(Folder(4)));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto journal, Open("machine-3"));
  EXPECT_TRUE(journal->TakeState().meta.has_value());
}

TEST_F(FencedJournalTest, AMasterThatStoodStillBeforeItsClaimFindsTheFolderClosed) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(Open(fmt::format("machine-{}", i)).status(), IsOk());
  }
  // It saw an empty folder long ago.
  ASSERT_THAT(ClaimFolder(directory_, "slow", ""), IsOk());
  ASSERT_THAT(OpenFence(directory_), IsOk());
  EXPECT_THAT(LookAtFence(directory_),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("closed by")));
}

TEST_F(FencedJournalTest, ARemovedFolderIsAClosedOne) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto old, Open("a"));
  fs::remove(directory_ + "/FENCE");
  EXPECT_THAT(old->Look(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("was removed")));
}

TEST_F(FencedJournalTest, AnotherJobsMasterClosesNothing) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto old, Open("a"));
  ASSERT_THAT(old->Write(SampleRecords()), IsOk());
  JournalHeader other = header_;
  other.job = "other";
  EXPECT_THAT(OpenFencedJournal(directory_, other, {.machine = "b", .take_over = true}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("metadata.name")));
  EXPECT_THAT(old->Write(Done(70)), IsOk());
}

TEST_F(FencedJournalTest, ARestartOfALostMasterEndsAtOnce) {
  ASSERT_THAT(Open("a", false, "run-1").status(), IsOk());
  ASSERT_THAT(Open("a", false, "run-2").status(), IsOk());
  ASSERT_THAT(Open("b", false, "run-3").status(), IsOk());
  EXPECT_THAT(Open("a", true, "run-2").status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("does not start again")));
  EXPECT_THAT(Open("b", false, "run-3").status(), IsOk());
}

TEST_F(FencedJournalTest, ARestartEndsAlsoAfterItsGenerationWasRemoved) {
  for (const char* name : {"1", "2", "3", "4"}) {
    ASSERT_THAT(Open(name, false, fmt::format("run-{}", name)).status(), IsOk());
  }
  EXPECT_FALSE(Exists(Folder(2)));
  for (const char* name : {"1", "2", "3"}) {
    EXPECT_THAT(Open(name, true, fmt::format("run-{}", name)).status(),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("does not start again")));
  }
}

TEST_F(FencedJournalTest, ADamagedOwnerIsNotGuessed) {
  ASSERT_THAT(Open("a").status(), IsOk());
  ASSERT_THAT(WriteFileAtomically(directory_ + "/MACHINE", "a"), IsOk());
  EXPECT_THAT(Open("a").status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("MACHINE")));
}

TEST(ThisMachine, HasAName) {
  EXPECT_FALSE(ThisMachine().empty());
  EXPECT_EQ(ThisMachine(), ThisMachine());
}

}  // namespace
}  // namespace muster
