#include "master/journal/rocksdb_journal.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "master/journal/record_codec.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "tests/master/journal/sample_records.h"
#include "tests/support/memory_journal.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::SampleRecords;
using testing::StatusIs;
using testing::Stored;

class RocksdbJournalTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Journal>> Open() {
    return OpenRocksdbJournal(directory_, header_);
  }
  /// The newest log file of RocksDB.
  fs::path NewestLog() const {
    fs::path newest;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().extension() == ".log") newest = std::max(newest, entry.path());
    }
    return newest;
  }

  testing::TempDir folder_;
  std::string directory_ = folder_.File("state/journal");
  JournalHeader header_{"flights", {{"spec.seed", "7"}}, {}};
};

TEST_F(RocksdbJournalTest, AgreesWithTheMemoryJournalAfterReopening) {
  testing::MemoryJournal memory;
  std::vector<std::vector<Mutation>> batches = {
      SampleRecords(),
      {EraseDone{DoneSeq(10), DoneSeq(11)}},
      {EraseFailure{testing::SampleShard(4)}},
      {EraseEvents{1}},
      {EraseStreamShard{{DatasetId(2), EpochIndex(0), ShardIndex(15)}}},
      {EraseNode{"ps-0"}}};
  for (const auto& batch : batches) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
    EXPECT_EQ(Stored(journal->TakeState()), Stored(memory.state()));
    ASSERT_THAT(journal->Write(batch), IsOk());
    ASSERT_THAT(memory.Write(batch), IsOk());
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
  const DurableState state = journal->TakeState();
  EXPECT_EQ(Stored(state), Stored(memory.state()));
  EXPECT_EQ(state.done.size(), 1u);
  EXPECT_EQ(state.failures.size(), 1u);
  EXPECT_EQ(state.events.size(), 1u);
  EXPECT_EQ(state.stream_shards.size(), 1u);
  EXPECT_FALSE(state.nodes.contains("ps-0"));
}

TEST_F(RocksdbJournalTest, WhatIsReplacedTakesABoundedSpace) {
  EXPECT_LE(JournalStorage().memtable_bytes, 4u << 20) << "README.md says so";
  const JournalStorage storage{.memtable_bytes = 256 << 10};
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal,
                              OpenRocksdbJournal(directory_, header_, storage));
  uintmax_t most = 0;
  for (uint64_t i = 1; i <= 200; ++i) {
    const std::vector<Mutation> batch{
        EventRecord{i, WallTime(5), "kind", "node", std::string(100 << 10, 'x')}, EraseEvents{i}};
    ASSERT_THAT(journal->Write(batch), IsOk());
    uintmax_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      std::error_code gone;  // RocksDB removes files meanwhile
      const uintmax_t size = entry.file_size(gone);
      if (!gone) bytes += size;
    }
    most = std::max(most, bytes);
  }
  EXPECT_LE(most, 12 * storage.memtable_bytes) << "20 MB were written";
}

TEST_F(RocksdbJournalTest, ATornTailIsDroppedAndNothingElse) {
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
    ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
    const std::vector<Mutation> last{EraseDone{DoneSeq(10), DoneSeq(12)}};
    ASSERT_THAT(journal->Write(last), IsOk());
  }
  const fs::path log = NewestLog();
  fs::resize_file(log, fs::file_size(log) - 3);
  // It was acknowledged, so it is no torn tail.
  for (const absl::Status& refused : {Open().status(), ReadRocksdbJournal(directory_).status()}) {
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kDataLoss,
                                  AllOf(HasSubstr("batch 3 was acknowledged"),
                                        HasSubstr(log.string()), HasSubstr("backup"))));
  }
  // The files after a power loss that also lost the acknowledgement.
  fs::remove(directory_ + "/ACKNOWLEDGED");
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
  EXPECT_EQ(journal->TakeState().done.size(), 3u);
}

TEST_F(RocksdbJournalTest, WithoutItsFirstFileItIsNotBegunAnew) {
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
    ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
  }
  fs::remove(directory_ + "/CURRENT");
  const auto refused =
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr(directory_ + "/CURRENT is missing"));
  EXPECT_THAT(Open(), refused);
  EXPECT_THAT(ReadRocksdbJournal(directory_), refused);
  fs::remove(directory_ + "/ACKNOWLEDGED");
  EXPECT_THAT(Open(), refused);
}

TEST_F(RocksdbJournalTest, OneOfAVersionThatDidNotCountBatchesIsReadAndCountedOn) {
  {
    rocksdb::Options options;
    options.create_if_missing = true;
    ASSERT_THAT(MakeDirectories(directory_), IsOk());
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, directory_, &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    ASSERT_TRUE(db->Put({}, "h", EncodeHeader(header_)).ok());
    for (const Mutation& mutation : SampleRecords()) {
      const StoreChange change = Encode(mutation);
      ASSERT_TRUE(db->Put({}, change.key, *change.value).ok());
    }
  }
  testing::MemoryJournal memory;
  ASSERT_THAT(memory.Write(SampleRecords()), IsOk());
  for (int i = 0; i < 3; ++i) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
    EXPECT_EQ(Stored(journal->TakeState()), Stored(memory.state()));
    ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
  }
}

TEST_F(RocksdbJournalTest, OneOfAnotherFormatIsRefusedWithWhatToDo) {
  std::string header = EncodeHeader(header_);
  header[1] = 9;  // field 1, the format
  {
    rocksdb::Options options;
    options.create_if_missing = true;
    ASSERT_THAT(MakeDirectories(directory_), IsOk());
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, directory_, &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    ASSERT_TRUE(db->Put({}, "h", header).ok());
  }
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr(directory_), HasSubstr("format 9"),
                                      HasSubstr("another spec.stateDirectory")));
  EXPECT_THAT(Open(), refused);
  EXPECT_THAT(Open(), refused) << "nothing was written";
  EXPECT_THAT(ReadRocksdbJournal(directory_), refused);
  EXPECT_THAT(ReadRocksdbHeader(directory_), refused);
}

TEST_F(RocksdbJournalTest, DamageInsideTheLogIsAnError) {
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
    for (int i = 0; i < 3; ++i) ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
  }
  const std::string log = NewestLog().string();
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(log, 1 << 20));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  ASSERT_THAT(WriteFileAtomically(log, bytes), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is damaged")));
}

TEST_F(RocksdbJournalTest, TwoMastersCannotHaveIt) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another master")));
}

TEST_F(RocksdbJournalTest, AnotherJobIsRefused) {
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
  }
  header_.job = "other";
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("belongs to another job")));
}

TEST_F(RocksdbJournalTest, APathThatIsAFileIsAnErrorWithThePath) {
  ASSERT_THAT(WriteFileAtomically(folder_.File("state"), "x"), IsOk());
  const absl::Status status = Open().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.File("state")));
}

/// Writes to the journal until a limit on the size of files, which stands in for a full disk, is
/// hit; exits with 0 when the last write failed and its message names the journal.
[[noreturn]] void WriteOverTheLimit(const std::string& directory, const JournalHeader& header,
                                    const std::function<fs::path()>& newest_log) {
  auto journal = OpenRocksdbJournal(directory, header);
  if (!journal.ok() || !(*journal)->Write(SampleRecords()).ok()) ::_exit(1);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{fs::file_size(newest_log()) + 100, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
  const std::vector<Mutation> large{EventRecord{3, {}, "kind", "", std::string(100'000, 'x')}};
  const absl::Status status = (*journal)->Write(large);
  if (status.ok()) ::_exit(3);
  if (std::string(status.message()).find(directory) == std::string::npos) ::_exit(4);
  journal->reset();
  ::_exit(0);
}

TEST_F(RocksdbJournalTest, AFailedWriteLosesNothingThatWasAcknowledged) {
  EXPECT_EXIT(WriteOverTheLimit(directory_, header_, [this] { return NewestLog(); }),
              ::testing::ExitedWithCode(0), "");
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
  const DurableState state = journal->TakeState();
  EXPECT_EQ(state.done.size(), 3u);
  EXPECT_EQ(state.events.size(), 2u);
}

TEST_F(RocksdbJournalTest, TheJobKeepsTheIdItBeganWith) {
  {
    ASSERT_THAT(Open().status(), IsOk());
  }  // as of a version that knew of none
  for (const char* id : {"first", "second"}) {
    header_.job_id = id;
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
    EXPECT_EQ(journal->job_id(), "first");
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const StoredJournal stored, ReadRocksdbJournal(directory_));
  EXPECT_EQ(stored.header.job_id, "first");
  MUSTER_ASSERT_OK_AND_ASSIGN(const JournalHeader header, ReadRocksdbHeader(directory_));
  EXPECT_EQ(header.job_id, "first");
}

/// Names and sizes of everything in the folder.
std::map<std::string, uint64_t> Listing(const std::string& folder) {
  std::map<std::string, uint64_t> listing;
  for (const auto& entry : fs::directory_iterator(folder)) {
    listing[entry.path().filename()] = entry.is_regular_file() ? entry.file_size() : 0;
  }
  return listing;
}

TEST_F(RocksdbJournalTest, IsReadWhileAMasterHasItOpenAndLeftAsItIs) {
  EXPECT_THAT(ReadRocksdbJournal(directory_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no journal")));
  EXPECT_THAT(ReadRocksdbHeader(directory_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no journal")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
  ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
  testing::MemoryJournal memory;
  ASSERT_THAT(memory.Write(SampleRecords()), IsOk());
  const auto before = Listing(directory_);
  MUSTER_ASSERT_OK_AND_ASSIGN(const StoredJournal stored, ReadRocksdbJournal(directory_));
  EXPECT_EQ(Stored(stored.state), Stored(memory.state()));
  EXPECT_EQ(stored.header.job, "flights");
  EXPECT_EQ(Listing(directory_), before);
  ASSERT_THAT(journal->Write(SampleRecords()), IsOk());  // the master was not disturbed
}

/// From its n-th listing of a folder on, the folder's logs are gone: they became tables after
/// RocksDB had read the MANIFEST.
class LogsGo final : public rocksdb::FileSystemWrapper {
 public:
  LogsGo(std::string folder, int listings)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        folder_(std::move(folder)),
        listings_(listings) {}
  const char* Name() const override { return "logs-go"; }
  bool gone() const { return listings_ < 0; }
  rocksdb::IOStatus GetChildren(const std::string& folder, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names,
                                rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus status =
        FileSystemWrapper::GetChildren(folder, options, names, context);
    if (folder == folder_ && --listings_ < 0) {
      std::erase_if(*names, [](const std::string& name) { return name.ends_with(".log"); });
    }
    return status;
  }

 private:
  const std::string folder_;
  int listings_;
};

TEST_F(RocksdbJournalTest, ACopyOfWhatChangesMeanwhileIsWholeOrRefused) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Journal> journal, Open());
  ASSERT_THAT(journal->Write(SampleRecords()), IsOk());
  testing::MemoryJournal memory;
  ASSERT_THAT(memory.Write(SampleRecords()), IsOk());
  bool gone = true;
  int refused = 0;
  for (int listings = 0; gone; ++listings) {
    ASSERT_LT(listings, 20);
    const auto files = std::make_shared<LogsGo>(directory_, listings);
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
    const std::string to = folder_.File(fmt::format("copy-{}", listings));
    fs::create_directories(to);
    ASSERT_THAT(WriteFileAtomically(to + "/FENCE", ""), IsOk());  // as a generation
    const absl::Status copied = CopyRocksdbJournal(directory_, to, {.env = env.get()});
    gone = files->gone();
    if (copied.ok()) {
      MUSTER_ASSERT_OK_AND_ASSIGN(const StoredJournal stored, ReadRocksdbJournal(to));
      EXPECT_EQ(Stored(stored.state), Stored(memory.state())) << listings;
    } else {
      EXPECT_THAT(copied, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(directory_)));
      ++refused;
    }
  }
  EXPECT_GE(refused, 2) << "once before the look, and once after it";
}

}  // namespace
}  // namespace muster
