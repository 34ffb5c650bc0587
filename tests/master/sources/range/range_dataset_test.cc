#include "master/sources/range/range_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr DatasetId kFirst(0);

JobSpec JobOf(uint64_t records, Shuffle shuffle) {
  JobSpec job;
  job.seed = 7;
  job.datasets = {{.name = "train",
                   .source = RangeSpec{.records = records},
                   .epochs = 2,
                   .minibatch_size = 4,
                   .minibatches_per_shard = 3,
                   .shuffle = shuffle}};
  return job;
}

/// The numbers of a shard, in the order of its runs.
std::vector<uint64_t> NumbersOf(const RangeDataset& dataset, uint32_t epoch, uint64_t index) {
  ShardWork work;
  dataset.Locate(dataset.layout()->RunsOf(EpochIndex(epoch), ShardIndex(index)), &work);
  EXPECT_TRUE(work.has_numbers());
  std::vector<uint64_t> numbers;
  for (const SourceRun& run : work.runs) {
    for (uint32_t i = 0; i < run.record_count; ++i) numbers.push_back(run.first_record + i);
  }
  return numbers;
}

TEST(RangeDatasetTest, WorkersAreToldHowManyNumbersThereAre) {
  HelloResponse hello;
  RangeDataset(JobOf(13, Shuffle::kNone), kFirst).Introduce(&hello);
  ASSERT_EQ(hello.numbered.size(), 1u);
  EXPECT_EQ(hello.numbered[0].dataset, "train");
  EXPECT_EQ(hello.numbered[0].records, 13u);
}

TEST(RangeDatasetTest, EveryNumberIsInOneShardOfEachEpochWhateverTheOrder) {
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kShards, Shuffle::kAll}) {
    for (const uint64_t records : {1, 4, 12, 13, 1'000}) {
      const RangeDataset dataset(JobOf(records, shuffle), kFirst);
      std::vector<uint64_t> expected(records);
      std::iota(expected.begin(), expected.end(), 0);
      for (uint32_t epoch = 0; epoch < 2; ++epoch) {
        std::vector<uint64_t> seen;
        for (uint64_t index = 0; index < dataset.layout()->shard_count(); ++index) {
          const std::vector<uint64_t> numbers = NumbersOf(dataset, epoch, index);
          seen.insert(seen.end(), numbers.begin(), numbers.end());
        }
        if (shuffle == Shuffle::kNone || records == 1'000) {
          EXPECT_EQ(std::ranges::is_sorted(seen), shuffle == Shuffle::kNone) << "epoch " << epoch;
        }
        std::ranges::sort(seen);
        EXPECT_EQ(seen, expected) << records << " records, epoch " << epoch;
      }
    }
  }
}

TEST(RangeDatasetTest, ItsShardsAreThoseOfAFileOfAsManyRecords) {
  const RangeDataset dataset(JobOf(100, Shuffle::kAll), kFirst);
  const ShardLayout file({{.records = 100}}, {.seed = 7,
                                              .dataset = kFirst,
                                              .minibatch_size = 4,
                                              .minibatches_per_shard = 3,
                                              .shuffle = Shuffle::kAll});
  ASSERT_EQ(dataset.layout()->shard_count(), file.shard_count());
  for (uint64_t index = 0; index < file.shard_count(); ++index) {
    EXPECT_EQ(dataset.layout()->RunsOf(EpochIndex(1), ShardIndex(index)),
              file.RunsOf(EpochIndex(1), ShardIndex(index)));
  }
}

TEST(RangeDatasetTest, TheLargestCostsNothing) {
  JobSpec job = JobOf(RangeSpec::kRecordsMax, Shuffle::kNone);
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kShards, Shuffle::kAll}) {
    job.datasets[0].shuffle = shuffle;
    // A shard has more records than a message may have runs: nothing is counted shard by shard.
    job.datasets[0].minibatch_size = 1'000;
    job.datasets[0].minibatches_per_shard = 1'000;
    const RangeDataset dataset(job, kFirst);
    EXPECT_EQ(dataset.layout()->record_count(), RangeSpec::kRecordsMax);
    EXPECT_EQ(dataset.layout()->shard_count(), 1'000'000u);
    const std::vector<uint64_t> numbers = NumbersOf(dataset, 0, 999'999);
    EXPECT_EQ(numbers.size(), 1'000'000u);
    EXPECT_LT(std::ranges::max(numbers), RangeSpec::kRecordsMax);
    if (shuffle == Shuffle::kNone) {
      EXPECT_EQ(numbers.back(), RangeSpec::kRecordsMax - 1);
    }
  }
}

TEST(RangeDatasetTest, ThereIsNothingToLookAt) {
  RangeDataset dataset(JobOf(100, Shuffle::kNone), kFirst);
  EXPECT_THAT(dataset.CheckSettings(), IsOk());
  EXPECT_THAT(dataset.Look({}), IsOk());
  EXPECT_THAT(dataset.Keep(), IsOk());
  EXPECT_THAT(dataset.OpenKept(), IsOk());
  EXPECT_FALSE(dataset.Growth().has_value());
  EXPECT_EQ(dataset.Fingerprint(), "range") << "it is in journals";
}

TEST(RangeDatasetTest, ThePreviewIsExact) {
  JobSpec job = JobOf(100, Shuffle::kNone);
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePreview train, RangeDataset(job, kFirst).Preview());
  EXPECT_EQ(train.name, "train");
  EXPECT_EQ(train.how, "train, 2 epochs");
  EXPECT_EQ(train.what, "100 record numbers in 9 shards");
  EXPECT_THAT(train.parts, IsEmpty());
  using Fact = SourcePreview::Fact;
  EXPECT_THAT(train.facts,
              ElementsAre(Pair("epochs", Fact(uint64_t{2})), Pair("mode", Fact("train")),
                          Pair("records", Fact(uint64_t{100})), Pair("shards", Fact(uint64_t{9}))));
  job.datasets[0].mode = DatasetMode::kEvaluate;
  MUSTER_ASSERT_OK_AND_ASSIGN(const SourcePreview test, RangeDataset(job, kFirst).Preview());
  EXPECT_EQ(test.how, "evaluate, after every training epoch");
}

}  // namespace
}  // namespace muster
