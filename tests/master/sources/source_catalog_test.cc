#include "master/sources/source_catalog.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "sharding/shard_order.h"
#include "tests/master/sources/fake_source.h"
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SourceCatalogTest : public testing::LinesJobTest {
 protected:
  auto Open() { return SourceCatalog::Open(job_, nullptr); }
  /// The records of a shard, read the way a worker does.
  std::vector<std::string> Records(const ShardWork& work) {
    std::vector<std::string> records;
    for (const SourceRun& run : work.runs) {
      auto text = ReadFile(work.files[run.file].path, 1 << 20);
      EXPECT_THAT(text, IsOk());
      std::string bytes = text->substr(run.byte_begin, run.byte_end - run.byte_begin);
      for (uint32_t i = 0; !bytes.empty(); ++i) {
        const size_t newline = std::min(bytes.find('\n'), bytes.size());
        const bool of_run = i >= run.records_before && i - run.records_before < run.record_count;
        if (of_run) records.push_back(bytes.substr(0, newline));
        bytes.erase(0, newline + 1);
      }
    }
    EXPECT_EQ(records.size(), work.record_count);
    return records;
  }
};

TEST_F(SourceCatalogTest, TheShardsOfAnEpochHoldEveryRecordOnce) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  ASSERT_EQ(catalog->dataset_count(), 2u);
  // 27 records with the same header, and 1 file without records.
  ASSERT_EQ(catalog->layout(kTrain).shard_count(), 5u);
  EXPECT_EQ(catalog->layout(kTrain).minibatch_count(), 9u);
  EXPECT_EQ(catalog->layout(kTrain).record_count(), 27u);
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<std::string> seen;
    uint64_t step = epoch * 9;
    for (uint64_t index = 0; index < 5; ++index) {
      const ShardWork work = catalog->WorkOf({kTrain, EpochIndex(epoch), ShardIndex(index)});
      for (const std::string& record : Records(work)) seen.insert(record);
      EXPECT_EQ(work.first_step, step);
      EXPECT_EQ(work.record_count, 3 * work.minibatch_count);
      step += work.minibatch_count;
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
  // 9 records are 3 minibatches of 3.
  EXPECT_EQ(Records(work), (std::vector<std::string>{"t36", "t49", "t64"}));
  EXPECT_EQ(work.mode, DatasetMode::kEvaluate);
  EXPECT_EQ(work.dataset_name, "test");
  EXPECT_EQ(work.files.at(0).path, dir_.File("test.csv"));
  EXPECT_EQ(work.runs.at(0).first_record, 6u);
  EXPECT_EQ(work.shuffle_seed, 0u);
  EXPECT_FALSE(work.has_header);
  EXPECT_EQ(work.files.at(0).bytes, Lines("", 9, "t").size());
}

TEST_F(SourceCatalogTest, StepsAreCountedOverAllTrainDatasets) {
  DatasetSpec more = job_.datasets[0];
  more.name = "more";
  LinesOf(&more).files = {dir_.File("train-2.csv")};
  more.epochs = 1;
  more.minibatches_per_shard = 1;  // 3 shards of 2, 2 and 3 records
  job_.datasets.push_back(more);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  constexpr DatasetId kMore(2);
  ASSERT_EQ(catalog->layout(kMore).shard_count(), 3u);
  const auto step = [&](DatasetId dataset, uint32_t epoch, uint64_t index) {
    return catalog->WorkOf({dataset, EpochIndex(epoch), ShardIndex(index)}).first_step;
  };
  // 9 minibatches in 5 shards, mixed with 3 in 3. The one epoch of the second dataset is over, but
  // the positions after it do not depend on that: epochs may grow.
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<uint64_t> of_train, of_more;
    for (uint64_t index = 0; index < 5; ++index) {
      of_train.push_back(step(kTrain, epoch, index) - epoch * 12);
    }
    for (uint64_t index = 0; index < 3; ++index) {
      of_more.push_back(step(kMore, epoch, index) - epoch * 12);
    }
    EXPECT_THAT(of_train, ElementsAre(0, 2, 4, 7, 10));
    EXPECT_THAT(of_more, ElementsAre(1, 6, 9));
  }
  EXPECT_EQ(step(kTest, 1, 2), 5u) << "3 minibatches a pass, counted for themselves";
}

TEST_F(SourceCatalogTest, RecordNumbersAreMixedWithFilesAsOtherFilesAre) {
  DatasetSpec more = job_.datasets[0];
  more.name = "more";
  more.source = RangeSpec{.records = 9};
  more.minibatches_per_shard = 1;
  job_.datasets.push_back(more);
  constexpr DatasetId kMore(2);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto opened, Open());
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto kept, SourceCatalog::OpenKept(job_));
  for (const SourceCatalog* catalog : {opened.get(), kept.get()}) {
    std::multiset<uint64_t> numbers;
    std::vector<uint64_t> steps;
    for (uint64_t index = 0; index < 3; ++index) {
      const ShardWork work = catalog->WorkOf({kMore, EpochIndex(1), ShardIndex(index)});
      EXPECT_TRUE(work.has_numbers());
      EXPECT_EQ(work.Contradiction(), std::nullopt);
      for (const SourceRun& run : work.runs) {
        for (uint32_t i = 0; i < run.record_count; ++i) numbers.insert(run.first_record + i);
      }
      steps.push_back(work.first_step);
    }
    EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_THAT(steps, ElementsAre(13, 18, 21)) << "9 minibatches of files and 3 of numbers";
    EXPECT_EQ(catalog->Fingerprint()[2], (std::pair<std::string, std::string>("more", "range")));
  }
}

TEST_F(SourceCatalogTest, ThePlanOfADatasetHasEveryRecordInOneShardWhateverTheOrder) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  const std::vector<DatasetPlan> plans = catalog->Plans();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].name, "train");
  EXPECT_EQ(plans[0].epochs, 2u);
  EXPECT_EQ(plans[0].shards, 5u);
  EXPECT_EQ(plans[0].records, 27u);
  EXPECT_EQ(plans[0].minibatch_size, 3u);
  EXPECT_FALSE(plans[0].stream.has_value());
  EXPECT_EQ(plans[1].mode, DatasetMode::kEvaluate);
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < plans[0].shards; ++i) {
      sum += plans[0].size_of(EpochIndex(epoch), ShardIndex(i)).records;
    }
    EXPECT_EQ(sum, 27u);
  }
}

/// A dataset that grows.
class GrowingSource : public FakeSource {
 public:
  GrowingSource() : FakeSource(std::make_shared<const ShardLayout>()) {}
  std::optional<StreamPlan> Growth() const override { return StreamPlan{.topic = "t"}; }
};

TEST_F(SourceCatalogTest, OfADatasetThatGrowsTheCoreSaysWhereShardsLie) {
  job_.datasets.resize(1);
  std::vector<std::unique_ptr<DatasetSource>> sources;
  sources.push_back(std::make_unique<GrowingSource>());
  const SourceCatalog catalog(job_, std::move(sources));
  const DatasetPlan plan = catalog.Plans().at(0);
  EXPECT_EQ(plan.shards, 0u);
  EXPECT_EQ(plan.stream->topic, "t");
  ShardWork work;
  work.first_step = 9;
  work.stream = {"t", {{TopicPartition(1), 2, 3}}};
  const ShardWork said = work;
  catalog.Describe({kTrain, EpochIndex(0), ShardIndex(0)}, &work);
  EXPECT_EQ(work, said);
}

TEST_F(SourceCatalogTest, AReopenedCatalogMapsTheIndexAndGivesTheSameWork) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto first, Open());
  int scans = 0;
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto second,
                              SourceCatalog::Open(job_, [&](const auto&) { ++scans; }));
  EXPECT_EQ(scans, 0);
  EXPECT_EQ(first->Fingerprint(), second->Fingerprint());
  for (uint64_t index = 0; index < 5; ++index) {
    const ShardId shard{kTrain, EpochIndex(1), ShardIndex(index)};
    EXPECT_EQ(first->WorkOf(shard), second->WorkOf(shard));
  }
}

TEST_F(SourceCatalogTest, APreviewHasEveryDataset) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto previews, SourceCatalog::Preview(job_));
  ASSERT_EQ(previews.size(), 2u);
  EXPECT_EQ(previews[0].name, "train");
  EXPECT_EQ(previews[1].name, "test");
}

TEST_F(SourceCatalogTest, MissingAndEmptyDataAreErrorsThatNameTheDataset) {
  Write("test.csv", "");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("dataset 'test'"), HasSubstr("no record"),
                                     HasSubstr("test.csv"))));
  // The attempt has pinned nothing, so the mistake can be fixed without a new state directory.
  LinesOf(&job_.datasets[0]).header = false;
  Write("test.csv", "now\n");
  EXPECT_THAT(Open(), IsOk());
  LinesOf(&job_.datasets[1]).files = {dir_.File("nothing-*.csv")};
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kNotFound,
                               AllOf(HasSubstr("dataset 'test'"), HasSubstr("nothing-*.csv"))));
}

TEST_F(SourceCatalogTest, TheIndexesAloneTellTheSameWhenTheDataAreGone) {
  EXPECT_THAT(SourceCatalog::OpenKept(job_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("idx")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, Open());
  for (const char* file : {"train-0.csv", "train-1.csv", "train-2.csv"}) {
    ASSERT_TRUE(std::filesystem::remove(dir_.File(file)));
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto stored, SourceCatalog::OpenKept(job_));
  EXPECT_EQ(stored->Fingerprint(), catalog->Fingerprint());
  for (uint64_t index = 0; index < 5; ++index) {
    const ShardId shard{kTrain, EpochIndex(1), ShardIndex(index)};
    EXPECT_EQ(stored->WorkOf(shard), catalog->WorkOf(shard));
  }
}

}  // namespace
}  // namespace muster
