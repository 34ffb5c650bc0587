#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/words/types.h"

namespace muster {

/// A shard that is DONE: its training took place, but it may have to run again.
struct DoneShard {
  DoneSeq seq;
  ShardId shard;
  LeaseToken token;
  friend bool operator==(const DoneShard&, const DoneShard&) = default;
};

/// The DONE shards of a job, in the order of seq, and by shard. It holds everything that became
/// DONE since the last snapshots, which may be millions of shards. It takes 40 to 56 bytes a shard,
/// and about 150 more for each epoch, which may have a single shard. The cost of an addition or
/// removal does not grow with their number. Pure; not thread-safe.
class DoneShards {
 public:
  using const_iterator = std::deque<DoneShard>::const_iterator;

  /// Requires: `done.seq` is larger than every seq in it, and the shard is not in it.
  void Add(const DoneShard& done);
  /// Removes the shard with the smallest, or the largest, seq. Requires: it is not empty.
  DoneShard TakeFirst();
  DoneShard TakeLast();

  bool Contains(const ShardId& shard) const { return SeqOf(shard) != DoneSeq(); }
  bool Contains(DoneSeq seq) const;
  /// nullptr if the shard is not in it. Valid until the next change.
  const DoneShard* Find(const ShardId& shard) const;
  const DoneShard& first() const { return by_seq_.front(); }
  const DoneShard& last() const { return by_seq_.back(); }
  const_iterator begin() const { return by_seq_.begin(); }
  const_iterator end() const { return by_seq_.end(); }
  size_t size() const { return by_seq_.size(); }
  bool empty() const { return by_seq_.empty(); }
  /// The number of places by shard: the memory grows with it.
  size_t places() const;
  /// The number of groups of neighbours that share places; at least one for each epoch.
  size_t pages() const { return pages_.size(); }
  friend bool operator==(const DoneShards& a, const DoneShards& b) {
    return a.by_seq_ == b.by_seq_;
  }

 private:
  static constexpr uint64_t kPageShards = 512;
  /// Neighbouring shards of an epoch; exists while any of them is DONE. It has no room for shards
  /// above those that were, because there may be very many epochs of few shards.
  struct Page {
    std::vector<DoneSeq> seqs;
    uint32_t count = 0;
  };
  /// Names the page by its first shard.
  static ShardId PageOf(const ShardId& shard);
  /// None (0) if it is not in it.
  DoneSeq SeqOf(const ShardId& shard) const;
  const_iterator AtOrAfter(DoneSeq seq) const;
  void Forget(const ShardId& shard);

  std::deque<DoneShard> by_seq_;
  absl::flat_hash_map<ShardId, Page> pages_;
};

}  // namespace muster
