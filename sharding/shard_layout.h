#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/words/limits.h"
#include "base/words/types.h"
#include "sharding/shard_order.h"

namespace muster {

/// Neighbouring records of one source.
struct RecordRun {
  uint32_t source = 0;        // index into the sources
  uint64_t first_record = 0;  // within the source, header not counted
  uint32_t record_count = 0;  // > 0
  friend bool operator==(const RecordRun&, const RecordRun&) = default;
};

/// How one dataset is cut into minibatches, and those into shards.
///
/// Sources whose header is the same are cut together: n records are ceil(n / minibatch_size)
/// minibatches that differ by one record at most, and m minibatches are ceil(m /
/// minibatches_per_shard) shards that differ by one minibatch at most. So a shard may span many
/// small sources, and no minibatch is a small rest. With Shuffle::kAll, a shard is a sample of all
/// blocks of neighbouring records (BlockOrder). O(sources) memory, whatever the number of
/// records. Thread-safe.
class ShardLayout {
 public:
  struct Source {
    uint64_t records = 0;  // may be 0
    uint64_t header = 0;   // a shard has records of one header only
  };
  struct Options {
    uint64_t seed = 0;
    DatasetId dataset;
    /// At least 1 each, and their product is below 2^32; the job file's bounds ensure this.
    uint32_t minibatch_size = 1;
    uint32_t minibatches_per_shard = 1;
    Shuffle shuffle = Shuffle::kNone;
    uint64_t runs_max = most::kRunsOfShard;
  };
  /// What is known of a shard without a look at its records.
  struct Shard {
    uint32_t record_count = 0;     // > 0
    uint32_t minibatch_count = 0;  // > 0
    /// Minibatches of the epoch that run before it. If shards are permuted, it is what their number
    /// would be on average.
    uint64_t first_minibatch = 0;
    friend bool operator==(const Shard&, const Shard&) = default;
  };

  /// No sources, no shards.
  ShardLayout() : ShardLayout({}, {}) {}
  ShardLayout(std::vector<Source> sources, Options options);

  uint64_t shard_count() const { return shard_count_; }
  uint64_t record_count() const { return record_count_; }
  uint64_t minibatch_count() const { return minibatch_count_; }
  const Options& options() const { return options_; }
  /// Where runs of records should begin and end: at multiples of it, and at the end of a source.
  uint32_t block_records() const { return block_records_; }
  /// A shard has at most about so many runs of records, if the sources are not smaller than a
  /// block.
  static constexpr uint32_t kBlocksPerShard = 256;
  /// A small shard has larger blocks, so that a piece of the file is worth a read, but never fewer
  /// than kBlocksPerSmallShard.
  static constexpr uint32_t kBlockRecordsMin = 16;
  static constexpr uint32_t kBlocksPerSmallShard = 64;
  /// Of sources that are so small that a shard may have more runs than `runs_max`, shards have
  /// fewer minibatches.
  uint64_t runs_max() const { return options_.runs_max; }
  /// No shard has more runs, in any epoch. More than runs_max() only if a single minibatch may
  /// have: then no shard can be sent to a worker.
  uint64_t most_runs() const { return most_runs_; }
  /// Some shards have fewer minibatches because of runs_max().
  bool is_cut_smaller() const { return is_cut_smaller_; }
  static uint32_t BlockRecords(uint32_t minibatch_size, uint32_t minibatches_per_shard);
  /// Of a whole shard: it has a block of each of so many parts of the sources.
  uint32_t blocks_per_shard() const;

  /// Requires index < shard_count().
  Shard At(EpochIndex epoch, ShardIndex index) const;
  /// The records of a shard, in the order of the epoch; RecordOrder shuffles them further. Requires
  /// index < shard_count().
  std::vector<RecordRun> RunsOf(EpochIndex epoch, ShardIndex index) const;

 private:
  /// Sources that are cut together.
  struct Stretch {
    std::vector<uint32_t> sources;
    std::vector<uint64_t> first_record{0};  // [sources + 1] of each, within the stretch
    std::vector<uint64_t> first_block{0};   // the same
    uint64_t first_shard = 0;
    uint64_t first_minibatch = 0;
    uint64_t minibatches = 0;
    uint64_t shards = 0;
    uint64_t records() const { return first_record.back(); }
    /// The records of the shard `number` of the stretch: [begin, end).
    std::pair<uint64_t, uint64_t> RecordsOf(uint64_t shard) const;
  };
  /// A shard within its stretch: records [begin, end), and minibatches.
  struct Place {
    const Stretch* stretch = nullptr;
    uint64_t begin = 0, end = 0;
    uint64_t first_minibatch = 0;
    uint32_t minibatches = 0;
  };
  class EpochBlocks;

  /// Cuts the stretch into shards.
  void Cut(Stretch* stretch);
  /// No shard of the stretch has more runs.
  uint64_t MostRuns(const Stretch& stretch) const;
  Place PlaceOf(EpochIndex epoch, ShardIndex index) const;
  static RecordRun RunAt(const Stretch& stretch, uint64_t record, uint64_t end);
  std::shared_ptr<const EpochBlocks> BlocksOf(const Stretch& stretch, EpochIndex epoch) const;

  const Options options_;
  const uint32_t block_records_;
  std::vector<Stretch> stretches_;
  uint64_t shard_count_ = 0;
  uint64_t record_count_ = 0;
  uint64_t minibatch_count_ = 0;
  uint64_t most_runs_ = 0;
  bool is_cut_smaller_ = false;

  /// The newest few: leases and replays are of neighbouring epochs.
  static constexpr size_t kEpochsKept = 4;
  struct Kept {
    Mutex mutex;
    std::map<std::pair<EpochIndex, uint64_t>, std::shared_ptr<const EpochBlocks>> blocks
        MUSTER_GUARDED_BY(mutex);  // by epoch and first shard of the stretch
  };
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace muster
