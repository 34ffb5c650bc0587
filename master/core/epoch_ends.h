#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "master/core/books.h"
#include "master/core/epochs/metric_course.h"
#include "master/core/kept_epochs.h"
#include "proto/status/metric_trend.h"

namespace muster {

/// Ends the epochs of a job that keeps weights of epochs or may stop early (EpochEndOptions), one
/// after the other. Nothing happens in other jobs.
///
/// An epoch ends when every shard of it, trained and evaluated, is COMMITTED or FAILED. Nothing of
/// the next epoch is leased before. So the snapshots that count at that moment are the weights that
/// the evaluation has judged, exactly, and no restore undoes either. In this step the weights are
/// kept, and it is decided from the COMMITTED metrics whether the next epoch begins. The journal
/// gets all of it in one batch, before any shard of the next epoch is granted.
///
/// If an epoch has FAILED shards, its weights may have a part of what these shards pushed.
///
/// Owns which epochs have ended, and which are kept. Pure; not thread-safe.
class EpochEnds {
 public:
  /// The last epoch that was better by the rule of StopEarly, from 1, and the rule; 0: none. It is
  /// needed when epochs before it were thinned out.
  struct Gain {
    uint32_t epoch = 0;
    std::string rule;
  };
  struct Ended {
    uint32_t epochs = 0;
    Gain gain;
  };
  /// `books` and `queue` outlive it. `kept`, and `ended`, the epochs that have ended: as the
  /// journal has them. Epochs before the newest one that has begun count as ended, too: the job did
  /// not wait for their ends then.
  EpochEnds(const Books* books, ShardQueue* queue, const KeptEpochs::Records& kept,
            const Ended& ended);

  /// Ends every epoch that is over.
  void Check(StepTime at);
  uint32_t ended() const { return ended_; }
  const Gain& gain() const { return gain_; }
  const KeptEpochs& kept() const { return kept_; }
  /// The epochs whose metrics are needed: kept ones, the best one, the last gain.
  std::set<EpochIndex> Needed() const;
  /// Why the job stops early; empty: it does not.
  const std::string& stop_text() const { return stop_text_; }
  /// The epoch with the best value of EpochEndOptions::keep_best so far.
  std::optional<EpochIndex> best() const { return kept_course_.best_epoch; }
  /// The value by which weights are kept; none: it is not defined.
  std::optional<double> ValueOf(EpochIndex epoch) const;
  /// Snapshot files that nothing names any more.
  std::vector<std::string> TakeUnusedFiles() { return std::exchange(unused_files_, {}); }
  /// As KeptEpochs::Collect.
  void Collect(std::vector<Mutation>* mutations) { kept_.Collect(mutations); }

 private:
  bool HasBegun(EpochIndex epoch) const;
  /// Nothing of the epoch, or of those before it, is to be done any more.
  bool IsOver(EpochIndex epoch) const;
  /// The first epoch that may count as better by StopEarly.
  uint32_t FirstOfStop() const;
  void End(StepTime at);
  void KeepWeights(EpochIndex epoch, StepTime at);
  void DropWeights();
  bool IsEveryNth(EpochIndex epoch) const;
  /// Stops the job if the metric says so, or lets the next epoch begin.
  void Decide();

  const Books* const books_;
  ShardQueue* const queue_;
  const EpochEndOptions& options_;
  KeptEpochs kept_;
  uint32_t ended_;
  Gain gain_;
  /// Of StopEarly, and of EpochEndOptions::keep_best: by what it is read, and what it was last.
  std::optional<RunningCourse> stop_running_, kept_running_;
  MetricCourse kept_course_;
  void ReadKeptCourse();
  std::string stop_text_;
  std::vector<std::string> unused_files_;
};

}  // namespace muster
