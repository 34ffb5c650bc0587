#include "master/sources/lines/lines_dataset.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/words/limits.h"
#include "master/sources/lines/file_stamps.h"
#include "master/sources/lines/index_file.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"
#include "tests/master/sources/lines_job.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::kTest;
using ::muster::testing::kTrain;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LinesDatasetTest : public testing::LinesJobTest {
 protected:
  absl::StatusOr<std::unique_ptr<LinesDataset>> Open(DatasetId id = kTrain) {
    MUSTER_RETURN_IF_ERROR(MakeDirectories(job_.state_directory + "/index"));
    auto dataset = std::make_unique<LinesDataset>(job_, id);
    MUSTER_RETURN_IF_ERROR(dataset->Look({}));
    MUSTER_RETURN_IF_ERROR(dataset->Keep());
    return dataset;
  }
  absl::Status Check() { return LinesDataset(job_, kTrain).Look({}); }
};

// Journals of jobs that are in progress have these: another value, and none of them can be resumed.
TEST_F(LinesDatasetTest, TheFingerprintIsAsItEverWas) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto train, Open(kTrain));
  EXPECT_EQ(train->Fingerprint(), "93fa97d0773f684e");
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto test, Open(kTest));
  EXPECT_EQ(test->Fingerprint(), "852dbe39a99d82b5");
}

TEST_F(LinesDatasetTest, AShardLiesInItsFile) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto train, Open());
  EXPECT_FALSE(train->Growth().has_value()) << "all of it is there";
  EXPECT_EQ(train->layout()->record_count(), 27u);
  ShardWork work;
  const std::vector<RecordRun> runs = {{2, 0, 2}, {0, 19, 1}, {2, 6, 1}};
  train->Locate(runs, &work);
  EXPECT_TRUE(work.has_header);
  const std::string last = Lines("header\n", 7, "b");
  ASSERT_EQ(work.files.size(), 2u) << "each is named once";
  EXPECT_EQ(work.files[0].path, dir_.File("train-2.csv"));
  EXPECT_EQ(work.files[0].bytes, last.size());
  EXPECT_EQ(work.files[1].path, dir_.File("train-0.csv"));
  ASSERT_EQ(work.runs.size(), 3u);
  EXPECT_EQ(work.runs[0], (SourceRun{.record_count = 2, .byte_begin = 7, .byte_end = 13}));
  EXPECT_EQ(work.runs[1].file, 1u);
  EXPECT_EQ(work.runs[2].first_record, 6u);
  EXPECT_EQ(work.runs[2].byte_end, last.size());
}

TEST_F(LinesDatasetTest, AChangedFileIsAnErrorThatNamesIt) {
  ASSERT_THAT(Open(), IsOk());
  std::string text = Lines("header\n", 7, "b");
  text[9] = 'X';
  Write("train-2.csv", text);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("train-2.csv"), HasSubstr("other content"),
                                     HasSubstr("stateDirectory"))));
  Write("train-2.csv", text + "more\n");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("train-2.csv"), HasSubstr("bytes"))));
  Write("train-2.csv", Lines("header\n", 7, "b"));
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(LinesDatasetTest, ARestartReadsThePinsOfThoseFilesOnlyThatLookOtherwise) {
  const std::string changed = dir_.File("train-2.csv");
  const std::string seen = job_.state_directory + "/index/train.seen";
  const std::vector<std::string> files = {dir_.File("train-0.csv"), dir_.File("train-1.csv"),
                                          changed};
  const auto see = [&] {
    std::vector<FileStamp> stamps;
    for (const auto& stamp : StampFiles(files, 1)) stamps.push_back(*stamp);
    return stamps;
  };
  ASSERT_THAT(Open(), IsOk());
  EXPECT_EQ(ReadFileStamps(seen, 3), see());
  std::string text = Lines("header\n", 7, "b");
  text[9] = 'X';
  Write("train-2.csv", text);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(changed)));
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(changed)));
  ASSERT_THAT(WriteFileStamps(seen, see()), IsOk());
  EXPECT_THAT(Open(), IsOk()) << "what looks as it did is not read";
  EXPECT_THAT(Check(), IsOk());
  ::unlink(seen.c_str());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(changed)));
  Write("train-2.csv", Lines("header\n", 7, "b"));
  EXPECT_THAT(Check(), IsOk());
  EXPECT_THAT(ReadFileStamps(seen, 3), ::testing::IsEmpty()) << "a check writes nothing";
  EXPECT_THAT(Open(), IsOk()) << "another inode, the same content";
  EXPECT_EQ(ReadFileStamps(seen, 3), see());
}

TEST_F(LinesDatasetTest, AFileThatAppearsOrGoesIsAnErrorThatNamesIt) {
  ASSERT_THAT(Open(), IsOk());
  Write("train-9.csv", "h\nx\n");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("train-9.csv"), HasSubstr("is new"))));
  ::unlink(dir_.File("train-9.csv").c_str());
  ::unlink(dir_.File("train-1.csv").c_str());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("train-1.csv"), HasSubstr("is missing"))));
}

TEST_F(LinesDatasetTest, InAFolderThatHasMovedTheFileThatMakesTheDifferenceIsNamed) {
  ASSERT_THAT(Open(), IsOk());
  const std::string moved = dir_.File("moved");
  std::filesystem::create_directory(moved);
  for (const char* name : {"train-0.csv", "train-1.csv", "train-2.csv"}) {
    std::filesystem::rename(dir_.File(name), moved + "/" + name);
  }
  LinesOf(&job_.datasets[0]).files = {moved + "/train-*.csv"};
  EXPECT_THAT(Open(), IsOk());
  ASSERT_THAT(WriteFileAtomically(moved + "/train-00.csv", "h\nx\n"), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr(moved + "/train-00.csv is new")));
  std::filesystem::remove(moved + "/train-00.csv");
  std::filesystem::remove(moved + "/train-2.csv");
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(dir_.File("train-2.csv") + " (its former path) is missing")));
}

TEST_F(LinesDatasetTest, AnotherMinibatchSizeIsAnError) {
  ASSERT_THAT(Open(), IsOk());
  job_.datasets[0].minibatch_size = 5;
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("minibatchSize 3"), HasSubstr("stateDirectory"))));
}

TEST_F(LinesDatasetTest, ADamagedIndexIsMadeAgain) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open());
  const std::string path = job_.state_directory + "/index/train.idx";
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path, 1 << 20));
  bytes[70] ^= 1;
  ASSERT_THAT(WriteFileAtomically(path, bytes), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto second, Open());
  EXPECT_EQ(first->Fingerprint(), second->Fingerprint());
}

TEST_F(LinesDatasetTest, TheFingerprintFollowsTheDataAndNotThePlace) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open());
  const std::string before = first->Fingerprint();

  ASSERT_THAT(MakeDirectories(dir_.File("moved")), IsOk());
  for (const char* name : {"train-0.csv", "train-1.csv", "train-2.csv"}) {
    ASSERT_EQ(::rename(dir_.File(name).c_str(), dir_.File(std::string("moved/") + name).c_str()),
              0);
  }
  LinesOf(&job_.datasets[0]).files = {dir_.File("moved/train-*.csv")};
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto moved, Open());
  EXPECT_EQ(moved->Fingerprint(), before);
  ShardWork work;
  moved->Locate(moved->layout()->RunsOf(EpochIndex(0), ShardIndex(0)), &work);
  EXPECT_THAT(work.files.at(0).path, HasSubstr("/moved/"));

  Write("moved/train-0.csv", Lines("header\n", 20, "c"));
  job_.state_directory = dir_.File("fresh");
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto changed, Open());
  EXPECT_NE(changed->Fingerprint(), before);
}

TEST_F(LinesDatasetTest, AMillionShardsAreMapped) {
  // One record a shard: 1,000,000 shards of 2 bytes.
  std::string text(2'000'000, '\n');
  for (size_t i = 0; i < text.size(); i += 2) text[i] = 'x';
  Write("test.csv", text);
  job_.datasets[1].minibatch_size = 1;
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open(kTest));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto second, Open(kTest));
  ASSERT_EQ(second->layout()->shard_count(), 1'000'000u);
  ShardWork work;
  second->Locate(second->layout()->RunsOf(EpochIndex(0), ShardIndex(999'999)), &work);
  EXPECT_EQ(work.runs.at(0).byte_begin, 1'999'998u);
  EXPECT_EQ(work.runs.at(0).byte_end, 2'000'000u);
}

TEST_F(LinesDatasetTest, AFileThatIsNoTextIsRefusedBeforeAnythingIsRead) {
  Write("train-2.csv", "\x1f\x8b\x08 packed");
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("train-2.csv"), HasSubstr("gzip"))));
  Write("train-2.csv", "\xff\xfeh\n");
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-16")));
  Write("train-2.csv", "\xef\xbb\xbf" + Lines("header\n", 7, "b"));
  EXPECT_THAT(Check(), IsOk());
}

class CutOffScanTest : public LinesDatasetTest {
 protected:
  /// A scan that writes after each file what it has finished.
  absl::Status Scan(bool keeps_parts = true) {
    const absl::Status made = MakeDirectories(job_.state_directory + "/index");
    if (!made.ok()) return made;
    dataset_.emplace(job_, kTrain, /*part_bytes=*/1);
    done_.clear();
    return dataset_->Look({.progress =
                               [this](const SourceProgress& at) {
                                 done_.push_back(at.bytes_done);
                                 total_ = at.bytes_total;
                               },
                           .alive = [this] { ++alive_; },
                           .keeps_parts = keeps_parts});
  }
  void BreakLast() { Write("train-2.csv", std::string((16 << 20) + 1, 'x')); }
  void RepairLast() { Write("train-2.csv", Lines("header\n", 7, "b")); }
  size_t Files() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(job_.state_directory + "/index"), {}));
  }

  std::optional<LinesDataset> dataset_;
  std::vector<uint64_t> done_;
  uint64_t total_ = 0;
  std::atomic<int> alive_{0};
};

TEST_F(CutOffScanTest, GoesOnBehindTheFilesThatItHasFinished) {
  ASSERT_THAT(Scan(), IsOk());
  EXPECT_THAT(done_, ::testing::Contains(total_));
  const size_t scans = done_.size();
  BreakLast();
  ASSERT_THAT(Scan(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("train-2.csv")));
  RepairLast();
  ASSERT_THAT(Scan(), IsOk());
  EXPECT_LT(done_.size(), scans) << "the others are not read again";
  EXPECT_THAT(done_, ::testing::Each(::testing::Gt(total_ / 2)));
  ASSERT_THAT(dataset_->Keep(), IsOk());
  EXPECT_EQ(dataset_->Fingerprint(), "93fa97d0773f684e") << "as if it had been read at once";
  EXPECT_EQ(Files(), 2u) << "the index and the stamps";
}

TEST_F(CutOffScanTest, AFileThatChangedMeanwhileIsReadAgain) {
  BreakLast();
  ASSERT_THAT(Scan(), Not(IsOk()));
  Write("train-0.csv", Lines("header\n", 20, "z"));
  RepairLast();
  ASSERT_THAT(Scan(), IsOk());
  ASSERT_THAT(dataset_->Keep(), IsOk());
  EXPECT_NE(dataset_->Fingerprint(), "93fa97d0773f684e");
}

TEST_F(CutOffScanTest, ACheckWritesNothing) {
  BreakLast();
  ASSERT_THAT(Scan(/*keeps_parts=*/false), Not(IsOk()));
  EXPECT_EQ(Files(), 0u);
}

TEST_F(CutOffScanTest, TellsThatItLives) {
  ASSERT_THAT(Scan(), IsOk());
  EXPECT_GE(alive_, 12) << "each file was looked at, opened, read and pinned";
  ASSERT_THAT(dataset_->Keep(), IsOk());
  alive_ = 0;
  ASSERT_THAT(Scan(), IsOk());
  EXPECT_GE(alive_, 3) << "each file was looked at";
}

/// An index of so many files with one record each.
void WriteTinyFiles(const JobSpec& job, size_t files) {
  const DatasetSpec& dataset = job.datasets[0];
  std::vector<SourceIndex> sources(files, {"/data/x", {4, 0x1}, {4, 1, {0}}});
  ASSERT_THAT(MakeDirectories(job.state_directory + "/index"), IsOk());
  ASSERT_THAT(
      IndexFile::Write(job.state_directory + "/index/train.idx",
                       {dataset.minibatch_size, dataset.minibatches_per_shard, true}, sources),
      IsOk());
}

TEST_F(LinesDatasetTest, AShardOfTinyFilesHasAsManyAsAWorkerTakes) {
  job_.datasets[0].minibatch_size = 30'000;
  job_.datasets[0].minibatches_per_shard = 4;
  WriteTinyFiles(job_, 70'000);
  LinesDataset dataset(job_, kTrain);
  ASSERT_THAT(dataset.OpenKept(), IsOk());
  ASSERT_EQ(dataset.layout()->shard_count(), 2u) << "3 minibatches would be one shard";
  ShardWork work;
  dataset.Locate(dataset.layout()->RunsOf(EpochIndex(0), ShardIndex(0)), &work);
  EXPECT_LE(work.runs.size(), most::kRunsOfShard);
  EXPECT_THAT(fields::Decode<ShardWork>(fields::Encode(work)).status(), IsOk());
  const std::string fingerprint = dataset.Fingerprint();
  WriteTinyFiles(job_, 60'000);
  LinesDataset fewer(job_, kTrain);
  ASSERT_THAT(fewer.OpenKept(), IsOk());
  EXPECT_EQ(fewer.layout()->shard_count(), 1u);
  EXPECT_NE(fewer.Fingerprint(), fingerprint);
}

TEST_F(LinesDatasetTest, AMinibatchOfMoreFilesThanAWorkerTakesIsRefused) {
  job_.datasets[0].minibatch_size = 70'000;
  WriteTinyFiles(job_, 70'000);
  EXPECT_THAT(LinesDataset(job_, kTrain).OpenKept(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("dataset 'train'"), HasSubstr("of 70,000 records"),
                             HasSubstr("join small files"))));
}

}  // namespace
}  // namespace muster
