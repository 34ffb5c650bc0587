#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words/dataset_modes.h"
#include "proto/status/dataset_status.h"

/// How the metrics of a job change from epoch to epoch: the newest, the previous and the best
/// value. The master computes them here, and every display shows them. Part of the model of a job
/// (job_status.h). Pure.
namespace muster {

/// One metric of one dataset.
struct MetricTrend {
  static constexpr const char* kName = "MetricTrend";
  std::string dataset;
  std::string mode = ToString(DatasetMode::kTrain);
  std::string metric;
  uint32_t epoch = 0;
  double latest = 0;
  bool epoch_over = false;
  std::optional<double> previous;
  std::string better = "unknown";
  std::optional<double> best;
  uint32_t best_epoch = 0;
  uint32_t worse_epochs = 0;
  std::string remark;
  static void Fields(auto& f, auto& t) {
    f(1, "dataset", t.dataset, {"Its name"});
    f.Choice(2, "mode", t.mode, kDatasetModes);
    f(3, "metric", t.metric, {"Its name"});
    f(4, "epoch", t.epoch, {"The last one of which something is committed, from 0"});
    f(5, "latest", t.latest, {"In that epoch; null: not defined"});
    f(6, "epoch_over", t.epoch_over,
      {"false: some of its shards are still to come, and the value will change"});
    f(7, "previous", t.previous,
      {"In the newest epoch before it that is over; null: there is none"});
    f.Choice(8, "better", t.better, {"higher", "lower", "unknown"},
             {"Which values are better, by the metric's name"});
    f(9, "best", t.best,
      {"Of the listed epochs that are over and have neither minibatches_again nor records_later "
       "(unless evaluations overlap); null: there is none, or the name does not say what is "
       "better"});
    f(10, "best_epoch", t.best_epoch, {"The first that had it, from 0"});
    f(11, "worse_epochs", t.worse_epochs,
      {"How many of the newest epochs that are over, in a row, were clearly worse than the best"});
    f(12, "remark", t.remark,
      {.says = "A sentence for people when a metric of an evaluation has been clearly worse than "
               "its best for some epochs, as of a model that is overfitting, or when the newest "
               "epoch has minibatches_again or records_later; empty: nothing",
       .most = 1 << 10});
  }
};

/// The most trends of a job. Those of the last datasets are left out first.
inline constexpr size_t kMetricTrendsMax = 256;
/// A remark is made after so many epochs in a row that were clearly worse.
inline constexpr uint32_t kWorseEpochsOfRemark = 3;

/// Which values of a metric are better, by the words in its name: higher for auc, accuracy,
/// precision, recall, f1, *_at_k and the like; lower for names with loss or error, rmse, mae, mse.
enum class Better : uint8_t { kUnknown, kHigher, kLower };
Better BetterOf(std::string_view metric);

/// True if `value` is clearly worse than `best`: by more than a hundredth of `best` plus a
/// hundredth of the gain since the `first` epoch. Never true if the name does not say what is
/// better.
bool IsClearlyWorse(Better better, double first, double best, double value);

/// A trend for each metric of the last epoch with committed shards, in the order of datasets and
/// names.
std::vector<MetricTrend> TrendsOf(const std::vector<DatasetStatus>& datasets);

/// The last epoch with committed shards; nullptr: there is none.
const EpochStatus* LastCommittedEpoch(const DatasetStatus& dataset);

}  // namespace muster
