#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "master/core/core_options.h"
#include "master/core/durable_state.h"
#include "sharding/shard_queue.h"

namespace muster {

/// Records and metrics of each epoch. There may be very many epochs: if more than so many are
/// known, older ones are *thinned out*. Of these, only the number of epochs and of their rejected
/// records is kept, because all of their records are COMMITTED. Pure; not thread-safe.
class EpochTotals {
 public:
  using Key = std::pair<DatasetId, EpochIndex>;
  /// `metric_names`: as in CoreLimits. The plan and the queue outlive it.
  struct Options {
    size_t metric_names = 0;
    Evaluation evaluation = Evaluation::kAtTheEnd;
  };
  EpochTotals(const std::vector<DatasetPlan>* plan, const ShardQueue* queue, Options options)
      : plan_(*plan), queue_(*queue), options_(options) {}

  /// What the journal has of COMMITTED shards. Returns their rejected records.
  uint64_t Restore(const DurableState& state);
  /// A shard is DONE with so many records, or no longer.
  void AddDone(const ShardId& shard, uint64_t records);
  void TakeBack(const ShardId& shard, uint64_t records);
  /// A DONE shard is COMMITTED. Merges those of its metrics whose names the epoch knows or has room
  /// for.
  void Commit(const ShardId& shard, const ShardMetrics& metrics, uint64_t records);

  uint64_t RecordsCommitted(DatasetId dataset, EpochIndex epoch) const;
  /// Of DONE and COMMITTED shards.
  uint64_t RecordsDone(DatasetId dataset, EpochIndex epoch) const;
  /// As Ledger::Metrics.
  std::shared_ptr<const ShardMetrics> Metrics(DatasetId dataset, EpochIndex epoch) const;
  /// The epochs of which something is or was DONE and that were not thinned out, in order.
  std::vector<EpochIndex> KnownEpochs(DatasetId dataset) const;
  /// How many epochs were thinned out.
  uint64_t ThinnedEpochs(DatasetId dataset) const;

  /// Thins out datasets with more than `most` known epochs (OldEpochs), but no `needed` epochs, nor
  /// the best one of the first metrics (an eighth of `most`, by name).
  void ThinOut(size_t most, const std::set<EpochIndex>& needed);

  /// Epochs of which metrics were dropped because they have too many names, in the order of the
  /// first time; only since this master began, and kDropsMax of them at most.
  const std::vector<Key>& metrics_dropped() const { return metrics_dropped_; }
  static constexpr size_t kDropsMax = 1'000;

  /// Appends what changed since the last call.
  void Collect(std::vector<Mutation>* mutations);

 private:
  struct Totals {
    uint64_t records_committed = 0;
    uint64_t records_done = 0;  // DONE, not COMMITTED
    std::shared_ptr<ShardMetrics> metrics = std::make_shared<ShardMetrics>();
    /// Others may still read them.
    mutable bool shared = false;
    bool dropped = false;
    /// To be changed.
    ShardMetrics* OwnMetrics();
  };
  struct OfDataset {
    /// Of known epochs.
    std::map<EpochIndex, Totals> epochs;
    uint64_t thinned = 0;
    uint64_t thinned_rejects = 0;
  };
  Totals& At(const Key& epoch) { return datasets_[epoch.first].epochs[epoch.second]; }
  /// Null: it is not known.
  const Totals* Find(DatasetId dataset, EpochIndex epoch) const;
  bool IsWhole(const Key& epoch) const {
    return queue_.WholeEpochs(epoch.first).Contains(epoch.second.value());
  }
  void MergeNamed(const ShardId& shard, const ShardMetrics& metrics);
  /// Of the first metrics whose names say what is better, the best of the whole epochs.
  std::set<EpochIndex> BestEpochs(DatasetId dataset, size_t metrics_max) const;
  void Thin(const Key& epoch);

  const std::vector<DatasetPlan>& plan_;
  const ShardQueue& queue_;
  const Options options_;
  std::map<DatasetId, OfDataset> datasets_;
  std::vector<Key> metrics_dropped_;
  std::set<Key> dirty_;
  std::vector<EraseEpoch> erased_;
};

}  // namespace muster
