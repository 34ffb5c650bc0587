#include "cli/show/epochs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

namespace muster {
namespace {

/// Each of 100 records in ten shards; `begun` of them committed.
DatasetStatus Epochs(uint32_t all, uint32_t begun) {
  DatasetStatus dataset{.name = "train", .epochs_total = all};
  for (uint32_t e = 0; e < all; ++e) {
    EpochStatus epoch{.epoch = e, .records_expected = 100, .shards = {.total = 10, .todo = 10}};
    if (e < begun) {
      epoch.records_done = epoch.records_committed = 100;
      epoch.rejected_records = 1;
      epoch.shards = {.total = 10, .committed = 9, .failed = 1};
    }
    dataset.epochs.push_back(epoch);
  }
  return dataset;
}

std::vector<std::string> Numbers(const DatasetStatus& dataset, EpochsShown shown) {
  std::vector<std::string> numbers;
  for (const EpochGroup& group : GroupsOf(dataset, shown)) numbers.push_back(NumberText(group));
  return numbers;
}

TEST(EpochsTest, TheNewestAreShownOneByOne) {
  struct Row {
    uint32_t all, begun;
    std::vector<std::string> numbers;
  };
  for (const Row& row :
       {Row{1, 0, {"1"}}, Row{6, 6, {"1", "2", "3", "4", "5", "6"}}, Row{7, 0, {"1", "2-7"}},
        Row{7, 1, {"1", "2-7"}}, Row{7, 3, {"1", "2", "3", "4-7"}},
        Row{7, 4, {"1", "2", "3", "4", "5-7"}}, Row{250, 250, {"1-247", "248", "249", "250"}},
        Row{250, 120, {"1-117", "118", "119", "120", "121-250"}},
        Row{250, 249, {"1-246", "247", "248", "249", "250"}}}) {
    EXPECT_EQ(Numbers(Epochs(row.all, row.begun), EpochsShown::kNewest), row.numbers);
    EXPECT_EQ(Numbers(Epochs(row.all, row.begun), EpochsShown::kAll).size(), row.all);
  }
  EXPECT_TRUE(GroupsOf(DatasetStatus{}, EpochsShown::kNewest).empty());
}

TEST(EpochsTest, RecordsOfEpochsThatAreNotListedAreInTheFirstGroup) {
  DatasetStatus dataset = Epochs(50, 40);
  for (EpochStatus& epoch : dataset.epochs) epoch.epoch += epoch.epoch < 10 ? 3 : 1'000;
  dataset.epochs_total = 5'000;
  dataset.omitted_records_done = dataset.omitted_records_committed = 99'300;
  const std::vector<EpochGroup> groups = GroupsOf(dataset, EpochsShown::kNewest);
  EXPECT_EQ(NumberText(groups[0]), "1-1037");
  EXPECT_EQ(groups[0].sum.records_done, 99'300u + 3'700);
  EXPECT_EQ(groups[0].sum.records_committed, groups[0].sum.records_expected);
  EXPECT_EQ(groups.back().sum.records_done, 0u);
}

TEST(EpochsTest, GroupsHaveTheSums) {
  const std::vector<EpochGroup> groups = GroupsOf(Epochs(250, 120), EpochsShown::kNewest);
  EXPECT_EQ(groups[0].sum.records_committed, 11'700u);
  EXPECT_EQ(groups[0].sum.rejected_records, 117u);
  EXPECT_EQ(groups[0].sum.shards.committed, 9u * 117);
  EXPECT_EQ(groups[0].sum.shards.failed, 117u);
  EXPECT_EQ(groups[4].sum.records_expected, 13'000u);
  EXPECT_EQ(groups[4].sum.records_committed, 0u);
  EXPECT_EQ(groups[4].sum.shards.todo, 1'300u);
  DatasetStatus dataset = Epochs(250, 120);
  dataset.epochs_total = 5'000;
  dataset.omitted_records_expected = 475'000;
  const EpochGroup all = SumOf(dataset);
  EXPECT_EQ(NumberText(all), "1-5000");
  EXPECT_EQ(all.sum.records_expected, 500'000u);
  EXPECT_EQ(all.sum.records_committed, 12'000u);
}

TEST(EpochsTest, MetricsInWords) {
  struct Row {
    MetricTrend trend;
    const char* latest;
    const char* earlier;
  };
  for (const Row& row : {Row{{.metric = "auc", .latest = 0.81}, "auc 0.81", ""},
                         Row{{.metric = "auc", .latest = 0.81, .best = 0.81}, "auc 0.81", ""},
                         Row{{.metric = "auc",
                              .epoch = 1,
                              .latest = 0.81,
                              .previous = 0.8,
                              .best = 0.81,
                              .best_epoch = 1},
                             "auc 0.81",
                             "before 0.8, best so far"},
                         Row{{.metric = "auc",
                              .epoch = 79,
                              .latest = 0.7112345,
                              .previous = 0.712,
                              .best = 0.816,
                              .best_epoch = 2},
                             "auc 0.7112",
                             "before 0.712, best 0.816 in epoch 3"},
                         Row{{.metric = "mean", .epoch = 1, .latest = 1'234'567, .previous = 0},
                             "mean 1.235e+06",
                             "before 0"},
                         Row{{.metric = "auc", .epoch = 3, .latest = std::nan(""), .best = 0.5},
                             "auc undefined",
                             "best 0.5 in epoch 1"}}) {
    EXPECT_EQ(LatestText(row.trend), row.latest);
    EXPECT_EQ(EarlierText(row.trend), row.earlier) << row.latest;
  }
}

TEST(EpochsTest, WhichWeightsAreKept) {
  EXPECT_EQ(KeptText({}), "");
  EXPECT_EQ(KeptText({{.epoch = 1}, {.epoch = 4, .best = true, .value = 0.81}, {.epoch = 9}}),
            "weights kept of epoch 2, 5 (best: 0.81), 10\n");
  EXPECT_EQ(KeptText({{.epoch = 0, .best = true}}), "weights kept of epoch 1 (best)\n");
}

TEST(EpochsTest, ALineOfADatasetsMetrics) {
  MetricTrend auc{.dataset = "test",
                  .metric = "auc",
                  .epoch = 79,
                  .latest = 0.711,
                  .epoch_over = true,
                  .previous = 0.712,
                  .best = 0.816,
                  .best_epoch = 2};
  MetricTrend loss{
      .dataset = "test", .metric = "loss", .epoch = 79, .latest = 0.9, .epoch_over = true};
  const auto line = [](const std::vector<MetricTrend>& trends, size_t columns) {
    return TrendLine(trends, "test", "  ", columns);
  };
  EXPECT_EQ(line({auc, loss}, 0),
            "  epoch 80: auc 0.711 (before 0.712, best 0.816 in epoch 3), loss 0.9");
  EXPECT_EQ(line({auc, loss}, 68), "  epoch 80: auc 0.711 (before 0.712, best 0.816 in epoch 3)");
  EXPECT_EQ(line({auc, loss}, 40), "  epoch 80: auc 0.711");
  auc.epoch_over = false;
  EXPECT_EQ(line({auc}, 40), "  epoch 80 so far: auc 0.711");
  EXPECT_EQ(line({loss, loss, loss, loss, loss, loss}, 0),
            "  epoch 80: loss 0.9, loss 0.9, loss 0.9, loss 0.9, 2 more");
  EXPECT_EQ(TrendLine({auc}, "train", "", 0), "");
}

}  // namespace
}  // namespace muster
