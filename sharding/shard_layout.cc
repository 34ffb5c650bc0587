#include "sharding/shard_layout.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/words/parts.h"
#include "sharding/block_order.h"

namespace muster {
namespace {

// The purpose of the hash, so that no two uses of the job's seed share numbers.
constexpr uint64_t kBlockPurpose = 0x626c6f636b6f7264ULL;

}  // namespace

/// The blocks of a stretch in the order of one epoch, and where each begins in the epoch's records.
class ShardLayout::EpochBlocks {
 public:
  EpochBlocks(const Stretch& stretch, uint32_t block_records, uint32_t strata, uint64_t key)
      : stretch_(stretch),
        block_records_(block_records),
        order_(key, stretch.first_block.back(), strata) {
    for (size_t i = 0; i < stretch.sources.size(); ++i) {
      const uint64_t records = stretch.first_record[i + 1] - stretch.first_record[i];
      if (records % block_records == 0) continue;
      short_.push_back({.position = order_.PositionOf(stretch.first_block[i + 1] - 1),
                        .lacking = block_records - records % block_records});
    }
    std::ranges::sort(short_, {}, &ShortBlock::position);
    uint64_t lacking = 0;
    for (ShortBlock& block : short_) {
      block.begin = block.position * block_records - lacking;
      lacking += block.lacking;
    }
  }

  /// Records [begin, end) of the epoch.
  std::vector<RecordRun> Runs(uint64_t begin, uint64_t end) const {
    std::vector<RecordRun> runs;
    uint64_t position = PositionAt(begin);
    uint64_t at = begin;
    for (uint64_t block_begin = BeginOf(position); at < end; ++position) {
      const RecordRun block = RecordsOf(order_.BlockAt(position));
      const uint64_t skipped = at - block_begin;
      const uint64_t count = std::min<uint64_t>(block.record_count - skipped, end - at);
      runs.push_back({block.source, block.first_record + skipped, static_cast<uint32_t>(count)});
      at += count;
      block_begin += block.record_count;
    }
    return runs;
  }

 private:
  struct ShortBlock {
    uint64_t position = 0;
    uint64_t lacking = 0;
    uint64_t begin = 0;  // in the epoch's records
  };

  /// The position of the block with this record of the epoch.
  uint64_t PositionAt(uint64_t record) const {
    const auto next = std::ranges::upper_bound(short_, record, {}, &ShortBlock::begin);
    if (next == short_.begin()) return record / block_records_;
    const ShortBlock& before = *std::prev(next);
    const uint64_t end = before.begin + block_records_ - before.lacking;
    return record < end ? before.position : before.position + 1 + (record - end) / block_records_;
  }
  uint64_t BeginOf(uint64_t position) const {
    const auto next = std::ranges::lower_bound(short_, position, {}, &ShortBlock::position);
    if (next == short_.begin()) return position * block_records_;
    const ShortBlock& before = *std::prev(next);
    return before.begin + (position - before.position) * block_records_ - before.lacking;
  }
  RecordRun RecordsOf(uint64_t block) const {
    const auto next = std::ranges::upper_bound(stretch_.first_block, block);
    const auto i = static_cast<size_t>(next - stretch_.first_block.begin() - 1);
    const uint64_t first = (block - stretch_.first_block[i]) * block_records_;
    const uint64_t records = stretch_.first_record[i + 1] - stretch_.first_record[i];
    return {stretch_.sources[i], first,
            static_cast<uint32_t>(std::min<uint64_t>(block_records_, records - first))};
  }

  const Stretch& stretch_;
  const uint64_t block_records_;
  const BlockOrder order_;
  std::vector<ShortBlock> short_;  // by position
};

uint32_t ShardLayout::BlockRecords(uint32_t minibatch_size, uint32_t minibatches_per_shard) {
  const uint32_t records = minibatch_size * minibatches_per_shard;
  const uint32_t small = std::min(records / kBlocksPerSmallShard, kBlockRecordsMin);
  return std::max({records / kBlocksPerShard, small, 1u});
}

uint32_t ShardLayout::blocks_per_shard() const {
  return std::max(options_.minibatch_size * options_.minibatches_per_shard / block_records_, 1u);
}

ShardLayout::ShardLayout(std::vector<Source> sources, Options options)
    : options_(options),
      block_records_(BlockRecords(options.minibatch_size, options.minibatches_per_shard)) {
  MUSTER_CHECK(options.minibatch_size > 0 && options.minibatches_per_shard > 0);
  MUSTER_CHECK(uint64_t{options.minibatch_size} * options.minibatches_per_shard <
               (uint64_t{1} << 32));
  // Without a shuffle, the order of the sources stays, so only neighbours are cut together.
  std::map<uint64_t, size_t> by_header;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    if (sources[i].records == 0) continue;
    if (options_.shuffle == Shuffle::kNone && !by_header.contains(sources[i].header)) {
      by_header.clear();
    }
    const auto [at, is_new] = by_header.try_emplace(sources[i].header, stretches_.size());
    if (is_new) stretches_.emplace_back();
    Stretch& stretch = stretches_[at->second];
    stretch.sources.push_back(i);
    stretch.first_record.push_back(stretch.records() + sources[i].records);
    stretch.first_block.push_back(stretch.first_block.back() +
                                  DivideUp(sources[i].records, block_records_));
  }
  for (Stretch& stretch : stretches_) {
    stretch.first_shard = shard_count_;
    stretch.first_minibatch = minibatch_count_;
    Cut(&stretch);
    record_count_ += stretch.records();
    minibatch_count_ += stretch.minibatches;
    shard_count_ += stretch.shards;
  }
}

std::pair<uint64_t, uint64_t> ShardLayout::Stretch::RecordsOf(uint64_t shard) const {
  const auto record = [this](uint64_t of) {
    return BeginOfPart(BeginOfPart(of, shards, minibatches), minibatches, records());
  };
  return {record(shard), record(shard + 1)};
}

void ShardLayout::Cut(Stretch* stretch) {
  stretch->minibatches = DivideUp(stretch->records(), options_.minibatch_size);
  uint64_t most_runs = 0;
  for (uint64_t minibatches = options_.minibatches_per_shard;;
       minibatches = (minibatches + 1) / 2) {
    stretch->shards = DivideUp(stretch->minibatches, minibatches);
    most_runs = MostRuns(*stretch);
    if (most_runs <= options_.runs_max || minibatches == 1) break;
  }
  is_cut_smaller_ |=
      stretch->shards > DivideUp(stretch->minibatches, options_.minibatches_per_shard);
  most_runs_ = std::max(most_runs_, most_runs);
}

uint64_t ShardLayout::MostRuns(const Stretch& stretch) const {
  // A run has a record at least.
  const uint64_t records = DivideUp(stretch.minibatches, stretch.shards) *
                           DivideUp(stretch.records(), stretch.minibatches);
  if (records <= options_.runs_max) return records;
  uint64_t most = 0;
  if (options_.shuffle != Shuffle::kAll) {
    if (stretch.sources.size() == 1) return 1;
    const auto source_of = [&](uint64_t at) {
      return std::ranges::upper_bound(stretch.first_record, at) - stretch.first_record.begin();
    };
    for (uint64_t shard = 0; shard < stretch.shards; ++shard) {
      const auto [begin, end] = stretch.RecordsOf(shard);
      most = std::max(most, static_cast<uint64_t>(source_of(end - 1) - source_of(begin) + 1));
    }
    return most;
  }
  // In some epoch, the smallest blocks may be neighbours.
  std::vector<uint64_t> blocks;
  for (size_t i = 0; i < stretch.sources.size(); ++i) {
    const uint64_t rest = (stretch.first_record[i + 1] - stretch.first_record[i]) % block_records_;
    if (rest > 0) blocks.push_back(rest);
  }
  std::ranges::sort(blocks);
  uint64_t in_them = 0;
  while (most < blocks.size() && in_them + blocks[most] <= records) in_them += blocks[most++];
  return most + (records - in_them) / block_records_ + 2;  // parts of two more
}

ShardLayout::Place ShardLayout::PlaceOf(EpochIndex epoch, ShardIndex index) const {
  MUSTER_CHECK(index.value() < shard_count_);
  // With kAll, the shards of one stretch are samples already.
  const bool permuted = options_.shuffle == Shuffle::kShards ||
                        (options_.shuffle == Shuffle::kAll && stretches_.size() > 1);
  const ShardOrder order(options_.seed, options_.dataset, epoch, shard_count_, permuted);
  const uint64_t number = order.NumberAt(index);
  const auto next = std::ranges::upper_bound(stretches_, number, {}, &Stretch::first_shard);
  const Stretch& stretch = *std::prev(next);
  const uint64_t shard = number - stretch.first_shard;
  const auto minibatch = [&](uint64_t of) {
    return BeginOfPart(of, stretch.shards, stretch.minibatches);
  };
  const auto [begin, end] = stretch.RecordsOf(shard);
  return {.stretch = &stretch,
          .begin = begin,
          .end = end,
          .first_minibatch = permuted ? BeginOfPart(index.value(), shard_count_, minibatch_count_)
                                      : stretch.first_minibatch + minibatch(shard),
          .minibatches = static_cast<uint32_t>(minibatch(shard + 1) - minibatch(shard))};
}

ShardLayout::Shard ShardLayout::At(EpochIndex epoch, ShardIndex index) const {
  const Place place = PlaceOf(epoch, index);
  return {.record_count = static_cast<uint32_t>(place.end - place.begin),
          .minibatch_count = place.minibatches,
          .first_minibatch = place.first_minibatch};
}

RecordRun ShardLayout::RunAt(const Stretch& stretch, uint64_t record, uint64_t end) {
  const auto next = std::ranges::upper_bound(stretch.first_record, record);
  const auto i = static_cast<size_t>(next - stretch.first_record.begin() - 1);
  const uint64_t count = std::min(end, stretch.first_record[i + 1]) - record;
  return {stretch.sources[i], record - stretch.first_record[i], static_cast<uint32_t>(count)};
}

std::vector<RecordRun> ShardLayout::RunsOf(EpochIndex epoch, ShardIndex index) const {
  const Place place = PlaceOf(epoch, index);
  if (options_.shuffle == Shuffle::kAll) {
    return BlocksOf(*place.stretch, epoch)->Runs(place.begin, place.end);
  }
  std::vector<RecordRun> runs;
  for (uint64_t at = place.begin; at < place.end; at += runs.back().record_count) {
    runs.push_back(RunAt(*place.stretch, at, place.end));
  }
  return runs;
}

std::shared_ptr<const ShardLayout::EpochBlocks> ShardLayout::BlocksOf(const Stretch& stretch,
                                                                      EpochIndex epoch) const {
  const std::pair key(epoch, stretch.first_shard);
  {
    MutexLock lock(&kept_->mutex);
    const auto known = kept_->blocks.find(key);
    if (known != kept_->blocks.end()) return known->second;
  }
  const uint64_t seed = HashWords(HashWords(options_.seed, kBlockPurpose), options_.dataset.value(),
                                  epoch.value(), stretch.first_shard);
  auto blocks =
      std::make_shared<const EpochBlocks>(stretch, block_records_, blocks_per_shard(), seed);
  MutexLock lock(&kept_->mutex);
  kept_->blocks[key] = blocks;
  std::erase_if(kept_->blocks, [&](const auto& one) {
    return one.first.first.value() + kEpochsKept <= epoch.value();
  });
  return blocks;
}

}  // namespace muster
