#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "master/core/core_options.h"
#include "master/core/durable_state.h"
#include "sharding/stream/stream_cutter.h"

namespace muster {

/// The streams of a job: their shards that are not COMMITTED, and the progress of each topic
/// partition. Pure; not thread-safe. Methods that take a dataset or a shard require one of a
/// stream, unless they say otherwise.
class StreamTable {
 public:
  StreamTable(const std::vector<DatasetPlan>& plan, const DurableState& state);

  /// True if the shards of a dataset are cut while it grows, and have offsets here. Otherwise they
  /// belong to a layout that existed when the job began.
  bool Grows(DatasetId dataset) const { return streams_.contains(dataset); }
  /// Those datasets, ascending.
  std::vector<DatasetId> datasets() const;
  bool empty() const { return streams_.empty(); }
  /// The offsets of a shard; nullptr: it is COMMITTED, or of no stream.
  const StreamShard* Find(const ShardId& shard) const;
  /// Those of a dataset that are not COMMITTED.
  std::map<ShardId, StreamShard> ShardsOf(DatasetId dataset) const;
  /// Empty until the cluster was first seen.
  const std::string& cluster(DatasetId dataset) const { return streams_.at(dataset).cluster; }
  void SetCluster(DatasetId dataset, std::string cluster);

  void See(DatasetId dataset, std::span<const PartitionLook> partition_looks, TimePoint now,
           WallTime wall);
  struct NewShard {
    ShardId shard;
    StreamShard cut;
    /// Retention had taken its records before they could be cut.
    bool lost = false;
  };
  /// StreamCutter::CutDue as shards.
  std::vector<NewShard> CutDue(DatasetId dataset, uint64_t shards_max, TimePoint now);
  bool AtEnd(DatasetId dataset) const { return streams_.at(dataset).cutter.AtEnd(); }
  std::vector<TopicPartition> Truncated(DatasetId dataset) const {
    return streams_.at(dataset).cutter.Truncated();
  }
  /// Shards, not COMMITTED, of whose records retention has taken the first or all.
  std::vector<ShardId> BehindLog(DatasetId dataset) const;
  /// Ignores a shard that is not of a stream.
  void OnCommitted(const ShardId& shard);
  /// Retention has deleted its records: it no longer delays the committed offset or adds to the
  /// lag.
  void OnLost(const ShardId& shard);
  /// True if the shard is not COMMITTED, and OnLost() was the last of these calls for it.
  bool IsLost(const ShardId& shard) const;
  /// A lost shard will be tried again. For any other shard, nothing happens.
  void OnRetried(const ShardId& shard);

  /// The progress of a dataset in one topic partition.
  struct Progress {
    StreamPosition position;
    uint64_t log_begin = 0;
    uint64_t stable_end = 0;
    /// True if the two above are known: there was a look since the start.
    bool seen = false;
    /// Everything in [position.begin, committed) is COMMITTED, or lost.
    uint64_t committed = 0;
    /// Offsets that retention has taken.
    uint64_t lost = 0;
    /// Offsets of the dataset that can be read and are not COMMITTED. There are at most as many
    /// records. None if there was no look yet.
    std::optional<uint64_t> lag;
    /// Offsets of the dataset that cannot be read before an open transaction is over. None if there
    /// was no look yet.
    std::optional<uint64_t> held_back;
    /// When the oldest record that is not COMMITTED was first seen. Only shown to people.
    std::optional<WallTime> oldest;
    uint64_t open_ranges = 0;
  };
  /// By topic partition.
  std::vector<Progress> ProgressOf(DatasetId dataset) const;

  /// Appends what changed since the last call.
  void Collect(std::vector<Mutation>* mutations);

 private:
  struct Stream {
    StreamCutter cutter;
    ShardIndex next_shard;
    std::string cluster;
    /// The ranges that are neither COMMITTED nor lost, and their shards: by topic partition, then
    /// by first offset. A shard has all its ranges here, or none.
    std::map<TopicPartition, std::map<uint64_t, ShardIndex>> open;
    /// By topic partition: offsets.
    std::map<TopicPartition, uint64_t> lost;
    bool changed = false;

    /// False: a range was open already, or was not.
    bool Open(ShardIndex shard, const StreamShard& cut);
    bool Close(const StreamShard& cut);
    bool IsOpen(const StreamShard& cut) const;
  };

  std::map<DatasetId, Stream> streams_;
  std::map<ShardId, StreamShard> shards_;
  /// In the order in which they happened.
  std::vector<Mutation> pending_;
};

}  // namespace muster
