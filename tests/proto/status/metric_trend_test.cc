#include "proto/status/metric_trend.h"

#include <gmock/gmock.h>

#include <cmath>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

EpochStatus EpochWith(uint32_t number, const std::string& metric, double value) {
  return {.epoch = number,
          .records_expected = 100,
          .records_done = 100,
          .records_committed = 100,
          .metrics = {{metric, value}},
          .shards = {.total = 10, .committed = 10}};
}

DatasetStatus Evaluated(const std::string& metric, const std::vector<double>& values) {
  DatasetStatus dataset{.name = "test", .mode = "evaluate"};
  for (const double value : values) {
    const auto number = static_cast<uint32_t>(dataset.epochs.size());
    dataset.epochs.push_back(EpochWith(number, metric, value));
  }
  return dataset;
}

MetricTrend TrendOf(const DatasetStatus& dataset) {
  const std::vector<MetricTrend> trends = TrendsOf({dataset});
  EXPECT_THAT(trends, SizeIs(1));
  return trends.empty() ? MetricTrend() : trends[0];
}

TEST(MetricTrendTest, TheNameSaysWhichValuesAreBetter) {
  struct Row {
    const char* name;
    Better better;
  };
  for (const Row& row : {Row{"auc", Better::kHigher},
                         Row{"roc_auc", Better::kHigher},
                         Row{"AUC", Better::kHigher},
                         Row{"val/accuracy", Better::kHigher},
                         Row{"top-5 accuracy", Better::kHigher},
                         Row{"precision", Better::kHigher},
                         Row{"recall@10", Better::kHigher},
                         Row{"hit_at_10", Better::kHigher},
                         Row{"clicks_at_k", Better::kHigher},
                         Row{"clicks@5", Better::kHigher},
                         Row{"f1", Better::kHigher},
                         Row{"macro_f1", Better::kHigher},
                         Row{"loss", Better::kLower},
                         Row{"logloss", Better::kLower},
                         Row{"log_loss", Better::kLower},
                         Row{"accuracy_loss", Better::kLower},
                         Row{"loss_at_10", Better::kLower},
                         Row{"error", Better::kLower},
                         Row{"error_rate", Better::kLower},
                         Row{"mean_squared_error", Better::kLower},
                         Row{"rmse", Better::kLower},
                         Row{"mae", Better::kLower},
                         Row{"MSE", Better::kLower},
                         Row{"", Better::kUnknown},
                         Row{"@", Better::kUnknown},
                         Row{"10@", Better::kUnknown},
                         Row{"at_10", Better::kUnknown},
                         Row{"mean", Better::kUnknown},
                         Row{"prediction", Better::kUnknown},
                         Row{"auc.average_precision", Better::kHigher},
                         Row{"auc.calibration", Better::kUnknown},
                         Row{"raucous", Better::kUnknown},
                         Row{"lossless", Better::kUnknown},
                         Row{"false_positives", Better::kUnknown}}) {
    EXPECT_EQ(BetterOf(row.name), row.better) << row.name;
  }
}

TEST(MetricTrendTest, ClearlyWorseIsMoreThanAHundredth) {
  struct Row {
    Better better;
    double first, best, value;
    bool worse;
  };
  for (const Row& row :
       {Row{Better::kHigher, 0.8, 0.8, 0.79, true}, Row{Better::kHigher, 0.8, 0.8, 0.793, false},
        Row{Better::kHigher, 0.8, 0.8, 0.9, false}, Row{Better::kHigher, 0.7, 0.816, 0.711, true},
        Row{Better::kLower, 0.5, 0.43, 0.44, true}, Row{Better::kLower, 0.5, 0.43, 0.434, false},
        Row{Better::kLower, 0.5, 0.43, 0.40, false},
        // Next to nothing is left of the loss: ten times of it is little.
        Row{Better::kLower, 0.5, 0.0001, 0.001, false}, Row{Better::kLower, 0.5, 0, 0.1, true},
        Row{Better::kHigher, -2, -1, -1.5, true}, Row{Better::kUnknown, 0.8, 0.8, 0.1, false}}) {
    EXPECT_EQ(IsClearlyWorse(row.better, row.first, row.best, row.value), row.worse)
        << row.first << " " << row.best << " " << row.value;
  }
}

TEST(MetricTrendTest, NewestPreviousAndBest) {
  const MetricTrend trend = TrendOf(Evaluated("auc", {0.7, 0.81, 0.816, 0.815}));
  EXPECT_EQ(trend.dataset, "test");
  EXPECT_EQ(trend.mode, "evaluate");
  EXPECT_EQ(trend.metric, "auc");
  EXPECT_EQ(trend.epoch, 3u);
  EXPECT_TRUE(trend.epoch_over);
  EXPECT_EQ(trend.latest, 0.815);
  EXPECT_EQ(trend.previous, 0.816);
  EXPECT_EQ(trend.better, "higher");
  EXPECT_EQ(trend.best, 0.816);
  EXPECT_EQ(trend.best_epoch, 2u);
  const MetricTrend loss = TrendOf(Evaluated("loss", {0.5, 0.4, 0.4, 0.45}));
  EXPECT_EQ(loss.better, "lower");
  EXPECT_EQ(loss.best, 0.4);
  EXPECT_EQ(loss.best_epoch, 1u) << "the first that had it";
  const MetricTrend unknown = TrendOf(Evaluated("mean", {1, 5, 3}));
  EXPECT_EQ(unknown.better, "unknown");
  EXPECT_EQ(unknown.previous, 5);
  EXPECT_FALSE(unknown.best.has_value());
}

TEST(MetricTrendTest, AnEpochThatIsNotOverIsNotTheBest) {
  DatasetStatus dataset = Evaluated("auc", {0.7, 0.8, 0.99, 0});
  dataset.epochs[2].records_committed = 10;
  dataset.epochs[2].shards.committed = 1;
  dataset.epochs[3].records_committed = 0;  // not begun
  dataset.epochs[3].shards.committed = 0;
  dataset.epochs[3].metrics.clear();
  const MetricTrend trend = TrendOf(dataset);
  EXPECT_EQ(trend.epoch, 2u);
  EXPECT_FALSE(trend.epoch_over);
  EXPECT_EQ(trend.latest, 0.99);
  EXPECT_EQ(trend.best, 0.8);
  EXPECT_EQ(trend.previous, 0.8);
  // Epochs run side by side: one that is not over is not the previous one either.
  dataset.epochs[1].shards.committed = 9;
  EXPECT_EQ(TrendOf(dataset).previous, 0.7);
  EXPECT_EQ(TrendOf(dataset).best, 0.7);
  dataset.epochs[1].shards.committed = 10;
  // FAILED shards will not be committed.
  dataset.epochs[2].shards.failed = 9;
  EXPECT_EQ(TrendOf(dataset).best, 0.99);
}

TEST(MetricTrendTest, WhatIsNotDefinedIsNoBest) {
  MetricTrend trend = TrendOf(Evaluated("auc", {std::nan(""), 0.7, std::nan("")}));
  EXPECT_TRUE(std::isnan(trend.latest));
  EXPECT_EQ(trend.previous, 0.7);
  EXPECT_EQ(trend.best, 0.7);
  trend = TrendOf(Evaluated("auc", {std::nan("")}));
  EXPECT_FALSE(trend.best.has_value());
  EXPECT_FALSE(trend.previous.has_value());
  EXPECT_THAT(TrendsOf({DatasetStatus{.name = "train"}}), IsEmpty());
}

TEST(MetricTrendTest, OverfittingIsRemarkedOn) {
  struct Row {
    const char* metric;
    std::vector<double> values;
    uint32_t worse_epochs;
    bool remark;
  };
  for (const Row& row : {Row{"auc", {0.81, 0.815, 0.816, 0.75, 0.73, 0.711}, 3, true},
                         Row{"auc", {0.81, 0.815, 0.816, 0.75, 0.73}, 2, false},
                         Row{"auc", {0.81, 0.816, 0.75, 0.73, 0.72, 0.815}, 0, false},
                         Row{"auc", {0.816, 0.815, 0.814, 0.813, 0.812}, 0, false},
                         Row{"auc", {0.7, 0.71, 0.72, 0.73, 0.74}, 0, false},
                         Row{"logloss", {0.5, 0.43, 0.45, 0.5, 0.6}, 3, true},
                         Row{"logloss", {0.5, 0.3, 0.0001, 0.0002, 0.0003, 0.0004}, 0, false},
                         Row{"mean", {1, 5, 1, 1, 1, 1}, 0, false}, Row{"auc", {0.8}, 0, false}}) {
    const MetricTrend trend = TrendOf(Evaluated(row.metric, row.values));
    EXPECT_EQ(trend.worse_epochs, row.worse_epochs) << ::testing::PrintToString(row.values);
    EXPECT_EQ(!trend.remark.empty(), row.remark) << ::testing::PrintToString(row.values);
  }
  DatasetStatus dataset = Evaluated("auc", {0.81, 0.815, 0.816, 0.75, 0.73, 0.711});
  EXPECT_EQ(TrendOf(dataset).remark,
            "test auc is 0.711; its best was 0.816 after epoch 3. The last 3 epochs were clearly "
            "worse: the model may be overfitting");
  dataset.mode = "train";
  EXPECT_EQ(TrendOf(dataset).worse_epochs, 3u);
  EXPECT_EQ(TrendOf(dataset).remark, "") << "of an evaluation only";
}

TEST(MetricTrendTest, OfAllDatasetsAtMostSoMany) {
  DatasetStatus train = Evaluated("loss", {0.5});
  train.name = "train";
  train.epochs[0].metrics["auc"] = 0.6;
  EXPECT_THAT(TrendsOf({train, Evaluated("auc", {0.7})}),
              ElementsAre(Field(&MetricTrend::metric, "auc"), Field(&MetricTrend::metric, "loss"),
                          Field(&MetricTrend::dataset, "test")));
  for (int i = 0; i < 300; ++i) train.epochs[0].metrics["m" + std::to_string(i)] = i;
  EXPECT_THAT(TrendsOf({train, train}), SizeIs(kMetricTrendsMax));
}

TEST(MetricTrendTest, AnEpochWhoseMinibatchesWereJudgedAgainIsNeverTheBest) {
  DatasetStatus dataset = Evaluated("mse", {0.5, 0.3, 0.4});
  dataset.mode = "train";
  dataset.epochs[1].minibatches_again = 12;
  MetricTrend trend = TrendOf(dataset);
  EXPECT_EQ(trend.best, 0.4);
  EXPECT_EQ(trend.best_epoch, 2u);
  EXPECT_EQ(trend.previous, 0.5);
  EXPECT_EQ(trend.remark, "");
  dataset.epochs.pop_back();
  trend = TrendOf(dataset);
  EXPECT_EQ(trend.latest, 0.3);
  EXPECT_EQ(trend.best, 0.5);
  EXPECT_EQ(trend.remark,
            "test mse of epoch 2 is too good, and not compared: 12 minibatches ran again after a "
            "process died, and were judged by weights that had seen them");
}

TEST(MetricTrendTest, AnEvaluationThatRanAgainWithLaterWeightsIsNeverTheBest) {
  DatasetStatus dataset = Evaluated("auc", {0.7, 0.9});
  dataset.epochs[1].records_later = 30;
  MetricTrend trend = TrendOf(dataset);
  EXPECT_EQ(trend.best, 0.7);
  EXPECT_EQ(trend.remark,
            "test auc of epoch 2 is not compared: it was measured again after a process died, by "
            "weights that may have seen 30 records of later epochs");
  dataset.overlaps = true;
  trend = TrendOf(dataset);
  EXPECT_EQ(trend.best, 0.9);
  EXPECT_EQ(trend.remark,
            "test auc of epoch 2 was measured while up to 30 records of later epochs were trained");
}

}  // namespace
}  // namespace muster
