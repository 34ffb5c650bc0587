#include "master/sources/source_catalog.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "master/sources/seen_files.h"
#include "sharding/shard_order.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr DatasetId kTrain(0);
constexpr DatasetId kTest(1);

class SourceCatalogTest : public ::testing::Test {
 protected:
  SourceCatalogTest() {
    job_.name = "job";
    job_.seed = 7;
    job_.state_directory = dir_.File("state");
    DatasetSpec train;
    train.name = "train";
    train.source = LinesSpec{.files = {dir_.File("train-*.csv")}, .header = true};
    train.epochs = 2;
    train.minibatch_size = 3;
    train.minibatches_per_shard = 2;
    train.shuffle = true;
    DatasetSpec test;
    test.name = "test";
    test.mode = DatasetMode::kEvaluate;
    test.source = LinesSpec{.files = {dir_.File("test.csv")}};
    test.minibatch_size = 4;
    test.minibatches_per_shard = 1;
    job_.datasets = {train, test};
    Write("train-0.csv", Lines("header\n", 20, "a"));
    Write("train-1.csv", "header only\n");
    Write("train-2.csv", Lines("header\n", 7, "b"));
    Write("test.csv", Lines("", 9, "t"));
  }

  static LinesSpec& LinesOf(DatasetSpec* dataset) { return std::get<LinesSpec>(dataset->source); }
  static std::string Lines(std::string text, int count, const std::string& prefix) {
    for (int i = 0; i < count; ++i) text += prefix + std::to_string(i * i) + "\n";
    return text;
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_THAT(WriteFileAtomically(dir_.File(name), text), IsOk());
  }
  auto Open() { return SourceCatalog::Open(job_, nullptr); }
  /// The records of a shard, read the way a worker does.
  std::vector<std::string> Records(const ShardWork& work) {
    auto text = ReadFile(work.path, 1 << 20);
    EXPECT_THAT(text, IsOk());
    const std::string bytes = text->substr(work.byte_begin, work.byte_end - work.byte_begin);
    std::vector<std::string> records;
    for (size_t at = 0; at < bytes.size();) {
      const size_t newline = std::min(bytes.find('\n', at), bytes.size());
      records.push_back(bytes.substr(at, newline - at));
      at = newline + 1;
    }
    EXPECT_EQ(records.size(), work.record_count);
    return records;
  }

  TempDir dir_;
  JobSpec job_;
};

TEST_F(SourceCatalogTest, TheShardsOfAnEpochHoldEveryRecordOnce) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  ASSERT_EQ(catalog->dataset_count(), 2u);
  ASSERT_EQ(catalog->layout(kTrain).shard_count(), 6u);  // 4 + 0 + 2
  EXPECT_EQ(catalog->layout(kTrain).record_count(), 27u);
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<std::string> seen;
    for (uint64_t index = 0; index < 6; ++index) {
      const ShardWork work = catalog->WorkOf({kTrain, EpochIndex(epoch), ShardIndex(index)});
      for (const std::string& record : Records(work)) seen.insert(record);
      EXPECT_EQ(work.first_step, (epoch * 6 + index) * 2);
      EXPECT_EQ(work.minibatch_size, 3u);
      EXPECT_TRUE(work.has_header);
      EXPECT_EQ(work.shuffle_seed, RecordSeed(7, {kTrain, EpochIndex(epoch), ShardIndex(index)}));
    }
    std::multiset<std::string> expected;
    for (int i = 0; i < 20; ++i) expected.insert("a" + std::to_string(i * i));
    for (int i = 0; i < 7; ++i) expected.insert("b" + std::to_string(i * i));
    EXPECT_EQ(seen, expected) << "epoch " << epoch;
  }
}

TEST_F(SourceCatalogTest, AnEvaluateDatasetInFileOrder) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  const ShardWork work = catalog->WorkOf({kTest, EpochIndex(1), ShardIndex(2)});
  EXPECT_EQ(Records(work), (std::vector<std::string>{"t64"}));
  EXPECT_EQ(work.mode, DatasetMode::kEvaluate);
  EXPECT_EQ(work.dataset_name, "test");
  EXPECT_EQ(work.path, dir_.File("test.csv"));
  EXPECT_EQ(work.first_record, 8u);
  EXPECT_EQ(work.shuffle_seed, 0u);
  EXPECT_FALSE(work.has_header);
  EXPECT_EQ(work.source_bytes, Lines("", 9, "t").size());
}

TEST_F(SourceCatalogTest, StepsAreCountedOverAllTrainDatasets) {
  DatasetSpec more = job_.datasets[0];
  more.name = "more";
  LinesOf(&more).files = {dir_.File("train-2.csv")};
  more.epochs = 1;
  more.minibatches_per_shard = 1;  // 3 shards of 3, 3 and 1 records
  job_.datasets.push_back(more);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  constexpr DatasetId kMore(2);
  ASSERT_EQ(catalog->layout(kMore).shard_count(), 3u);
  const auto step = [&](DatasetId dataset, uint32_t epoch, uint64_t index) {
    return catalog->WorkOf({dataset, EpochIndex(epoch), ShardIndex(index)}).first_step;
  };
  uint64_t expected = 0;
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (uint64_t index = 0; index < 6; ++index) {
      EXPECT_EQ(step(kTrain, epoch, index), expected);
      expected += 2;
    }
    // Its one epoch is over, but the positions after it do not depend on that: epochs may grow.
    for (uint64_t index = 0; index < 3; ++index) {
      EXPECT_EQ(step(kMore, epoch, index), expected);
      expected += 1;
    }
  }
  EXPECT_EQ(step(kTest, 1, 2), 5u) << "3 shards a pass, counted for itself";
}

TEST_F(SourceCatalogTest, AReopenedCatalogMapsTheIndexAndGivesTheSameWork) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open());
  int scans = 0;
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto second,
                              SourceCatalog::Open(job_, [&](const auto&) { ++scans; }));
  EXPECT_EQ(scans, 0);
  EXPECT_EQ(first->Fingerprint(), second->Fingerprint());
  for (uint64_t index = 0; index < 6; ++index) {
    const ShardId shard{kTrain, EpochIndex(1), ShardIndex(index)};
    EXPECT_EQ(first->WorkOf(shard), second->WorkOf(shard));
  }
}

TEST_F(SourceCatalogTest, AChangedFileIsAnErrorThatNamesIt) {
  ASSERT_THAT(Open(), IsOk());
  std::string text = Lines("header\n", 7, "b");
  text[9] = 'X';
  Write("train-2.csv", text);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("dataset 'train'"), HasSubstr("train-2.csv"),
                                     HasSubstr("other content"), HasSubstr("stateDirectory"))));
  Write("train-2.csv", text + "more\n");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("train-2.csv"), HasSubstr("bytes"))));
  Write("train-2.csv", Lines("header\n", 7, "b"));
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(SourceCatalogTest, ARestartReadsThePinsOfThoseFilesOnlyThatLookOtherwise) {
  const std::string changed = dir_.File("train-2.csv");
  const std::string seen = job_.state_directory + "/index/train.seen";
  const std::vector<std::string> files = {dir_.File("train-0.csv"), dir_.File("train-1.csv"),
                                          changed};
  const auto see = [&] {
    std::vector<FileSight> sights;
    for (const auto& sight : SightFiles(files, 1)) sights.push_back(*sight);
    return sights;
  };
  ASSERT_THAT(Open(), IsOk());
  EXPECT_EQ(ReadSeenFiles(seen, 3), see());
  std::string text = Lines("header\n", 7, "b");
  text[9] = 'X';
  Write("train-2.csv", text);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(changed)));
  EXPECT_THAT(SourceCatalog::Check(job_, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(changed)));
  ASSERT_THAT(WriteSeenFiles(seen, see()), IsOk());
  EXPECT_THAT(Open(), IsOk()) << "what looks as it did is not read";
  EXPECT_THAT(SourceCatalog::Check(job_, nullptr), IsOk());
  ::unlink(seen.c_str());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(changed)));
  Write("train-2.csv", Lines("header\n", 7, "b"));
  EXPECT_THAT(SourceCatalog::Check(job_, nullptr), IsOk());
  EXPECT_THAT(ReadSeenFiles(seen, 3), ::testing::IsEmpty()) << "a check writes nothing";
  EXPECT_THAT(Open(), IsOk()) << "another inode, the same content";
  EXPECT_EQ(ReadSeenFiles(seen, 3), see());
}

TEST_F(SourceCatalogTest, AFileThatAppearsOrGoesIsAnErrorThatNamesIt) {
  ASSERT_THAT(Open(), IsOk());
  Write("train-9.csv", "h\nx\n");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("train-9.csv"), HasSubstr("is new"))));
  ::unlink(dir_.File("train-9.csv").c_str());
  ::unlink(dir_.File("train-1.csv").c_str());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("train-1.csv"), HasSubstr("is gone"))));
}

TEST_F(SourceCatalogTest, InAFolderThatHasMovedTheFileThatMakesTheDifferenceIsNamed) {
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
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr(dir_.File("train-2.csv") + " (its former path) is gone")));
}

TEST_F(SourceCatalogTest, AnotherMinibatchSizeIsAnError) {
  ASSERT_THAT(Open(), IsOk());
  job_.datasets[0].minibatch_size = 5;
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("minibatchSize 3"), HasSubstr("stateDirectory"))));
}

TEST_F(SourceCatalogTest, ADamagedIndexIsMadeAgain) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open());
  const std::string path = job_.state_directory + "/index/train.idx";
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path, 1 << 20));
  bytes[70] ^= 1;
  ASSERT_THAT(WriteFileAtomically(path, bytes), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto second, Open());
  EXPECT_EQ(first->Fingerprint(), second->Fingerprint());
}

TEST_F(SourceCatalogTest, TheFingerprintFollowsTheDataAndNotThePlace) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open());
  const auto before = first->Fingerprint();
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(before[0].first, "train");

  ASSERT_THAT(MakeDirectories(dir_.File("moved")), IsOk());
  for (const char* name : {"train-0.csv", "train-1.csv", "train-2.csv"}) {
    ASSERT_EQ(::rename(dir_.File(name).c_str(), dir_.File(std::string("moved/") + name).c_str()),
              0);
  }
  LinesOf(&job_.datasets[0]).files = {dir_.File("moved/train-*.csv")};
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto moved, Open());
  EXPECT_EQ(moved->Fingerprint(), before);
  EXPECT_THAT(moved->WorkOf({kTrain, EpochIndex(0), ShardIndex(0)}).path, HasSubstr("/moved/"));

  Write("moved/train-0.csv", Lines("header\n", 20, "c"));
  job_.state_directory = dir_.File("fresh");
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto changed, Open());
  EXPECT_NE(changed->Fingerprint()[0], before[0]);
  EXPECT_EQ(changed->Fingerprint()[1], before[1]);
}

TEST_F(SourceCatalogTest, MissingAndEmptyDataAreErrorsThatNameTheDataset) {
  Write("test.csv", "");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("dataset 'test'"), HasSubstr("no record"),
                                     HasSubstr("test.csv"))));
  // Nothing was pinned by the attempt: it is fixed without a new state directory.
  LinesOf(&job_.datasets[0]).header = false;
  Write("test.csv", "now\n");
  EXPECT_THAT(Open(), IsOk());
  LinesOf(&job_.datasets[1]).files = {dir_.File("nothing-*.csv")};
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kNotFound,
                               AllOf(HasSubstr("dataset 'test'"), HasSubstr("nothing-*.csv"))));
}

TEST_F(SourceCatalogTest, AMillionShardsAreMapped) {
  // One record a shard: 1,000,000 shards of 2 bytes.
  std::string text(2'000'000, '\n');
  for (size_t i = 0; i < text.size(); i += 2) text[i] = 'x';
  Write("test.csv", text);
  job_.datasets[1].minibatch_size = 1;
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  ASSERT_EQ(catalog->layout(kTest).shard_count(), 1'000'000u);
  const ShardWork work = catalog->WorkOf({kTest, EpochIndex(0), ShardIndex(999'999)});
  EXPECT_EQ(work.byte_begin, 1'999'998u);
  EXPECT_EQ(work.byte_end, 2'000'000u);
}

TEST_F(SourceCatalogTest, TheIndexesAloneTellTheSameWhenTheDataAreGone) {
  EXPECT_THAT(SourceCatalog::OpenIndexes(job_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("idx")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  for (const std::string& file : catalog->files(kTrain)) std::filesystem::remove(file);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto stored, SourceCatalog::OpenIndexes(job_));
  EXPECT_EQ(stored->Fingerprint(), catalog->Fingerprint());
  for (uint64_t index = 0; index < 6; ++index) {
    const ShardId shard{kTrain, EpochIndex(1), ShardIndex(index)};
    EXPECT_EQ(stored->WorkOf(shard).path, catalog->WorkOf(shard).path);
    EXPECT_EQ(stored->WorkOf(shard).first_record, catalog->WorkOf(shard).first_record);
  }
}

}  // namespace
}  // namespace muster
