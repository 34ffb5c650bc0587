#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/interval_set.h"
#include "base/words/types.h"
#include "sharding/done_shards.h"

namespace muster {

/// What the queue must know of a dataset. `epochs` of an evaluate dataset is ignored: it has one
/// pass per training epoch (one if nothing is trained). So is that of a predict dataset, which has
/// one pass.
struct QueueDataset {
  DatasetMode mode = DatasetMode::kTrain;
  uint32_t epochs = 1;
  /// Shards per epoch.
  uint64_t shards = 0;
  /// It grows: `shards` is the number so far. Such a dataset has one epoch and trains.
  bool open = false;
  /// How fast a train dataset is read (DatasetMix).
  double pace = 1;
};

enum class ShardState : uint8_t { kTodo, kLeased, kDone, kCommitted, kFailed };
/// "todo", ...: the words of REST and the command line.
constexpr std::string_view ToString(ShardState state) {
  constexpr std::string_view kNames[] = {"todo", "leased", "done", "committed", "failed"};
  return kNames[static_cast<size_t>(state)];
}

/// The number of shards of one epoch in each state; todo = shards - all others.
struct EpochCounts {
  uint64_t shards = 0;
  uint64_t leased = 0;
  uint64_t done = 0;
  uint64_t committed = 0;
  uint64_t failed = 0;
};

/// Neighbouring shards of one epoch in one state: indices [begin, end).
struct ShardSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
  ShardState state = ShardState::kTodo;
  friend bool operator==(const ShardSpan&, const ShardSpan&) = default;
};

/// The state of every shard of a job. Shards are generated lazily in running order, so memory grows
/// with what is in flight: per epoch a cursor, the shards below it that are TODO again, the
/// committed intervals; and the shards that are DONE or FAILED. A leased shard is one below the
/// cursor that is in no other state (the leases themselves are kept by the master's core). An epoch
/// of which every shard is COMMITTED is *whole*: it is a number in a set of intervals.
///
/// Within an epoch, train datasets are mixed (DatasetMix); what is TODO of a dataset that grows
/// goes first, because it was cut when it was due. Training epochs have no barrier unless
/// OpenEpochs() sets one: epoch e+1 is leased when nothing of e is TODO. Pass e of an evaluate
/// dataset becomes leasable when no shard of the epochs up to e of any train dataset (of all, if it
/// has fewer) is TODO or leased, and none is open; it goes before training shards. FAILED shards
/// count as finished there, else one failure would hide all metrics. Unless evaluations overlap
/// with training, epoch e+1 is leased only when nothing of pass e is TODO or leased. So the pass
/// sees all steps of its epoch, and none of the next one. Predict datasets come last: their shards
/// are leasable while no shard of any train dataset is TODO or leased, and none is open.
///
/// Pure; not thread-safe. A transition from a state that the method does not name is a bug of the
/// caller and aborts.
class ShardQueue {
 public:
  explicit ShardQueue(std::vector<QueueDataset> datasets,
                      Evaluation evaluation = Evaluation::kAtTheEnd);

  /// Recovery: name every shard that is COMMITTED, DONE or FAILED, then call FinishRestore();
  /// everything else is TODO. Requires Valid() shards and epochs. Whole epochs come first; what
  /// else is said of them is ignored.
  void RestoreWhole(DatasetId dataset, const IntervalSet& epochs);
  void RestoreCommitted(DatasetId dataset, EpochIndex epoch, const IntervalSet& shards);
  /// In the order of seq.
  void RestoreDone(const DoneShard& done);
  void RestoreFailed(const ShardId& shard);
  void FinishRestore();

  /// Appends `count` TODO shards to an open dataset.
  void AddShards(DatasetId dataset, uint64_t count);
  /// Closes an open dataset: it gets no more shards. Idempotent.
  void Close(DatasetId dataset);
  bool IsOpen(DatasetId dataset) const { return datasets_[dataset.value()].open; }
  bool AnyOpen() const { return open_count_ > 0; }

  /// Only the first `epochs` training epochs are leased from now on; at the beginning, all are.
  void OpenEpochs(uint32_t epochs) { epochs_open_ = epochs; }
  /// The job has no epochs and passes after the first `epochs` (at least one). Requires that
  /// nothing of the others has begun.
  void EndAfter(uint32_t epochs);

  /// Whether the job has this shard; ids from the network must be asked first.
  bool Valid(const ShardId& shard) const;
  bool ValidEpoch(DatasetId dataset, EpochIndex epoch) const;
  /// Requires Valid(shard).
  ShardState StateOf(const ShardId& shard) const;
  /// The seq and token of a DONE shard; none in every other state.
  std::optional<DoneShard> FindDone(const ShardId& shard) const;

  /// The shard that TakeNext() would take.
  std::optional<ShardId> Peek() const;
  /// How many shards can be leased until something must wait for the leased ones: the end of the
  /// job, of a pass, or of an epoch that is waited for. The largest number: no such wait is near.
  uint64_t LeftBeforeWait() const;
  /// TODO -> leased, in running order; none if no shard is leasable now.
  std::optional<ShardId> TakeNext();
  /// TODO -> leased, even if it is not its turn (a re-asserted lease).
  void Take(const ShardId& shard);
  /// leased -> TODO.
  void Return(const ShardId& shard);
  /// leased -> DONE. `done.seq` is larger than every one before.
  void SetDone(const DoneShard& done);
  /// DONE with seq <= `last` -> COMMITTED, `most` of them at most; returns them in the order of
  /// seq.
  std::vector<DoneShard> CommitUpTo(DoneSeq last, size_t most);
  /// DONE with seq > `cut` -> TODO; returns them in the order of seq.
  std::vector<DoneShard> ReplayAfter(DoneSeq cut);
  /// A TODO shard goes behind the other shards of its epoch: its trainer has crashed or failed, and
  /// would only do so again before they had their turn. Not for open datasets, which may never
  /// catch up. Forgotten when it is leased.
  void Defer(const ShardId& shard);
  /// leased -> FAILED.
  void SetFailed(const ShardId& shard);
  /// FAILED -> TODO.
  void RetryFailed(const ShardId& shard);

  /// True if every shard is COMMITTED or FAILED, and no dataset is open.
  bool Finished() const {
    return open_count_ == 0 && committed_count_ + failed_count_ == shard_count_;
  }
  uint64_t shard_count() const { return shard_count_; }
  uint64_t committed_count() const { return committed_count_; }
  uint64_t failed_count() const { return failed_count_; }
  uint64_t leased_count() const { return leased_count_; }
  const DoneShards& done() const { return done_; }
  size_t dataset_count() const { return datasets_.size(); }
  /// The most epochs of any train dataset; at least one.
  uint32_t epochs_max() const { return epochs_max_; }
  /// The training epoch whose weights a shard sees: its own one, but the last one if it predicts.
  EpochIndex TrainingEpochOf(const ShardId& shard) const {
    return ModeOf(shard) == DatasetMode::kPredict ? EpochIndex(epochs_max_ - 1) : shard.epoch;
  }
  /// Epochs of a dataset; passes of an evaluate one.
  uint32_t epochs(DatasetId dataset) const { return datasets_[dataset.value()].epochs; }
  EpochCounts Counts(DatasetId dataset, EpochIndex epoch) const;
  /// The shards of an epoch from `begin` on, in order, as at most `runs_max` runs without gaps. The
  /// cost grows with the runs, and with the shards in flight. Requires ValidEpoch().
  std::vector<ShardSpan> Runs(DatasetId dataset, EpochIndex epoch, uint64_t begin,
                              size_t runs_max) const;
  /// The COMMITTED shards of an epoch, empty when it has not begun.
  const IntervalSet& Committed(DatasetId dataset, EpochIndex epoch) const;
  /// The epochs of which every shard is COMMITTED; none of a dataset that is open.
  const IntervalSet& WholeEpochs(DatasetId dataset) const { return begun_[dataset.value()].whole; }
  /// Every shard of the epochs up to this one is COMMITTED or FAILED, and the dataset is not open.
  bool IsSettledUpTo(DatasetId dataset, EpochIndex epoch) const;
  /// The FAILED shards of all epochs.
  std::vector<ShardId> FailedShards() const;

 private:
  struct Epoch {
    /// Shards >= cursor are TODO.
    uint64_t cursor = 0;
    /// TODO below the cursor.
    IntervalSet todo;
    /// Of `todo`: behind all others.
    std::set<uint64_t> deferred;
    IntervalSet committed;
    std::set<uint64_t> failed;
    uint64_t done = 0;
    /// An evaluation need not wait for them.
    uint64_t trained() const { return done + settled(); }
    uint64_t settled() const { return committed.count() + failed.size(); }
  };
  struct BegunEpochs {
    /// Those that are not whole.
    std::map<uint32_t, Epoch> epochs;
    IntervalSet whole;
    /// What each of the whole ones is.
    Epoch of_whole;
    /// Of all epochs before it, every shard is DONE, COMMITTED or FAILED. TrainedFor() searches
    /// from here.
    mutable uint32_t trained_frontier = 0;
  };
  /// Null: it has not begun.
  const Epoch* Find(DatasetId dataset, EpochIndex epoch) const;
  /// Requires that the epoch is not whole: nothing can happen to it any more.
  Epoch& At(DatasetId dataset, EpochIndex epoch);
  std::optional<uint64_t> FirstTodo(DatasetId dataset, EpochIndex epoch) const;
  /// True if an evaluation need not wait for the training that it judges. The cost does not grow
  /// with the epochs that are DONE.
  bool TrainedFor(uint32_t pass) const;
  std::optional<ShardId> PeekMode(DatasetMode mode, uint32_t* frontier) const;
  std::optional<ShardId> PeekPredict() const;
  /// Of datasets of this mode, the shard of this epoch whose turn is next.
  std::optional<ShardId> PeekEpoch(DatasetMode mode, uint32_t epoch) const;
  /// Shards of one epoch, from this one to before `end`.
  struct Run {
    ShardId first;
    uint64_t end = 0;
  };
  /// The same shards as runs of neighbours: sets of them take many at once much faster.
  static std::vector<Run> RunsOf(const std::vector<DoneShard>& shards);
  void AddTodo(const Run& run);
  /// Nothing of the passes before `epoch` is TODO or leased. Requires that the shard to evaluate
  /// next was looked for.
  bool EvaluatedBefore(uint32_t epoch) const;
  bool AnyEvaluate() const;
  DatasetMode ModeOf(const ShardId& shard) const { return datasets_[shard.dataset.value()].mode; }
  /// The shard is no longer leased.
  void Release(const ShardId& shard);
  /// In each of the dataset's epochs from `from` up to this one, `count` shards are all shards.
  bool AllUpTo(DatasetId dataset, uint32_t from, EpochIndex epoch,
               uint64_t (Epoch::*count)() const) const;
  /// Makes the epoch whole if all of it is COMMITTED.
  void SettleWhole(DatasetId dataset, EpochIndex epoch);
  /// Aborts unless every shard of the epoch is in exactly one state. Shards below the cursor in no
  /// other state are leased; there are at most as many as the whole job has leases.
  void CheckEpoch(DatasetId dataset, EpochIndex epoch) const;

  std::vector<QueueDataset> datasets_;
  Evaluation evaluation_;
  /// By dataset.
  std::vector<BegunEpochs> begun_;
  DoneShards done_;
  uint64_t shard_count_ = 0;
  uint64_t committed_count_ = 0;
  uint64_t failed_count_ = 0;
  uint64_t leased_count_ = 0;
  uint64_t evaluating_count_ = 0;  // of those
  uint32_t open_count_ = 0;
  /// No epoch (pass) before these has a TODO shard; Peek() searches from here.
  mutable uint32_t train_frontier_ = 0;
  mutable uint32_t evaluate_frontier_ = 0;
  uint32_t epochs_max_ = 0;
  uint32_t epochs_open_ = std::numeric_limits<uint32_t>::max();
};

}  // namespace muster
