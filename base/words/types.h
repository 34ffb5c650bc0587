#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/strong_id.h"

/// The terms of the protocol as types. docs/protocol.md defines them.
namespace muster {

using DatasetId = StrongId<struct DatasetIdTag, uint32_t>;
enum class DatasetMode : uint8_t {
  kTrain = 0,
  kEvaluate = 1,  // after each training epoch; changes no weights
  kPredict = 2,   // once, after all training; changes no weights, and has outputs
};
/// "train", "evaluate", "predict": as the job file has it.
constexpr const char* ToString(DatasetMode mode) {
  return mode == DatasetMode::kTrain      ? "train"
         : mode == DatasetMode::kEvaluate ? "evaluate"
                                          : "predict";
}

/// When the next epoch begins.
enum class Evaluation : uint8_t {
  kAtTheEnd,     // after the evaluation of the one before
  kOverlapping,  // as soon as nothing is left to lease: the evaluation sees steps of the next epoch
};

/// In which order the records of an epoch run.
enum class Shuffle : uint8_t {
  kNone,    // as they lie in the sources
  kShards,  // shards of neighbours in a random order, each shuffled inside; for slow disks
  kAll,     // each shard is a sample of the whole dataset, shuffled inside
};
/// "false", "shards", "true": as the job file has it.
constexpr const char* ToString(Shuffle shuffle) {
  return shuffle == Shuffle::kNone ? "false" : shuffle == Shuffle::kShards ? "shards" : "true";
}
/// A partition of a Kafka topic. Do not confuse it with PartitionId, a share of the weights.
using TopicPartition = StrongId<struct TopicPartitionTag, uint32_t>;
/// The epoch of a dataset, from 0.
using EpochIndex = StrongId<struct EpochIndexTag, uint32_t>;
/// The position of a shard in the order of its epoch (after the shuffle), from 0. See ShardOrder.
using ShardIndex = StrongId<struct ShardIndexTag, uint64_t>;
/// A minibatch within a shard, from 0.
using MinibatchIndex = StrongId<struct MinibatchIndexTag, uint32_t>;
using PartitionId = StrongId<struct PartitionIdTag, uint32_t>;
using TableId = StrongId<struct TableIdTag, uint32_t>;

/// It grows by one at every start of the master, and fences off older masters.
using MasterIncarnation = StrongId<struct MasterIncarnationTag, uint64_t>;
/// The order in which shards became DONE, with one counter for the whole job. 0 = none.
using DoneSeq = StrongId<struct DoneSeqTag, uint64_t>;
/// The version of the partition map.
using MapVersion = StrongId<struct MapVersionTag, uint64_t>;
/// R: it grows whenever a partition comes back from an older state.
using RestoreEpoch = StrongId<struct RestoreEpochTag, uint64_t>;
/// E(P): it grows whenever a partition gets a new owner.
using OwnerEpoch = StrongId<struct OwnerEpochTag, uint64_t>;
/// A server's slot (ps-0 is 0), and the incarnation of the process in it. The master assigns both.
using ServerId = StrongId<struct ServerIdTag, uint32_t>;
using ServerIncarnation = StrongId<struct ServerIncarnationTag, uint64_t>;
/// The number of a node's start, counted from 1 in one run of its supervisor; 0: not known.
/// Together with the node's name it identifies a process. A pid does not, because pids repeat, in
/// containers very soon.
using StartNumber = StrongId<struct StartNumberTag, uint64_t>;
/// A run of a shard under one token. Work that a restore has undone runs again in a new run.
using RunNumber = StrongId<struct RunNumberTag, uint32_t>;

/// Synchronous groups (docs/protocol.md, section 12). A step is one update of the weights by all
/// members together; the steps of a lineage are counted from 1, and 0 is the state before them.
using StepNumber = StrongId<struct StepNumberTag, uint64_t>;
/// It grows when steps are undone because nobody has their result any more.
using LineageNumber = StrongId<struct LineageNumberTag, uint64_t>;
/// It grows with every change of the members, and with every new try of a step. A number is never
/// used again, even after a restart of the master. 0 = none.
using AttemptNumber = StrongId<struct AttemptNumberTag, uint64_t>;

/// A counter that never repeats over master restarts: the incarnation in the upper 24 bits, a count
/// in the lower 40. Every value of a newer incarnation is larger than every value of an older one.
/// The zero value means "none".
template <typename Tag>
class FencedCounter {
 public:
  static constexpr uint64_t kCountBits = 40;
  constexpr FencedCounter() = default;
  constexpr FencedCounter(MasterIncarnation incarnation, uint64_t count)
      : value_((incarnation.value() << kCountBits) | count) {
    MUSTER_CHECK_MSG(
        incarnation.value() < (uint64_t{1} << 24) && count < (uint64_t{1} << kCountBits),
        "a fenced counter ran over");
  }
  static constexpr FencedCounter FromValue(uint64_t value) {
    FencedCounter result;
    result.value_ = value;
    return result;
  }
  constexpr uint64_t value() const { return value_; }
  constexpr MasterIncarnation incarnation() const {
    return MasterIncarnation(value_ >> kCountBits);
  }
  constexpr uint64_t count() const { return value_ & ((uint64_t{1} << kCountBits) - 1); }
  friend constexpr auto operator<=>(const FencedCounter&, const FencedCounter&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const FencedCounter& counter) {
    return H::combine(std::move(state), counter.value_);
  }
  friend std::string ToString(const FencedCounter& counter) {
    return std::to_string(counter.incarnation().value()) + "." + std::to_string(counter.count());
  }

 private:
  uint64_t value_ = 0;
};

/// Identifies one grant of one shard. It is always larger than every earlier token.
using LeaseToken = FencedCounter<struct LeaseTokenTag>;
/// Names one snapshot of one partition. Newer numbers are larger.
using SnapshotNumber = FencedCounter<struct SnapshotNumberTag>;

/// A record range of one source in one epoch.
struct ShardId {
  DatasetId dataset;
  EpochIndex epoch;
  ShardIndex index;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset), f(2, "epoch", s.epoch), f(3, "index", s.index);
  }
  friend constexpr auto operator<=>(const ShardId&, const ShardId&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const ShardId& id) {
    return H::combine(std::move(state), id.dataset, id.epoch, id.index);
  }
  /// "dataset/epoch/index", as numbers.
  friend std::string ToString(const ShardId& id) {
    return std::to_string(id.dataset.value()) + "/" + std::to_string(id.epoch.value()) + "/" +
           std::to_string(id.index.value());
  }
};

}  // namespace muster
