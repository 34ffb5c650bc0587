#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/words/types.h"
#include "sharding/done_shards.h"

namespace muster {

/// In a synchronous group with tables: as of which seq the partitions had all parts of a DONE
/// shard. Usually this is its own seq. A restore may take parts away (the shard *lacks* parts); a
/// replay brings them back, as of a later seq. Only such shards are kept here. Pure; not
/// thread-safe.
class PushedParts {
 public:
  /// The partitions had all parts of the shard as of this seq. None: it lacks parts.
  std::optional<DoneSeq> SeqOf(DoneSeq done) const;
  bool Lacks(DoneSeq done) const { return !SeqOf(done).has_value(); }
  /// The oldest shard that lacks parts.
  std::optional<DoneSeq> FirstLacking() const;
  void Lose(DoneSeq done) { pushed_[done] = std::nullopt; }
  void PushedAgain(DoneSeq done, DoneSeq as_of) { pushed_[done] = as_of; }
  /// Shards with seq <= `last`, or > `last`, are DONE no longer.
  void DropUpTo(DoneSeq last) { pushed_.erase(pushed_.begin(), pushed_.upper_bound(last)); }
  void DropAfter(DoneSeq last) { pushed_.erase(pushed_.upper_bound(last), pushed_.end()); }
  /// The DONE shards that have parts which a snapshot with this cut may lack.
  std::vector<DoneShard> PushedAfter(DoneSeq cut, const DoneShards& done) const;
  /// The largest seq up to which every DONE shard is in the snapshots with this cut.
  DoneSeq HeldUpTo(DoneSeq cut) const;

 private:
  std::map<DoneSeq, std::optional<DoneSeq>> pushed_;
};

}  // namespace muster
