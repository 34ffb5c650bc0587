#pragma once

#include <cstdint>
#include <map>

#include "base/words/types.h"

namespace muster {

/// How often trainers handed shards back before their end. A hand-back is *progress* when its run
/// was handed more minibatches than every earlier run that ended so; a shard has only so many
/// minibatches, so progress ends. What comes without it is counted.
///
/// Nothing of it is journaled: what it leads to, a charged failure, is. Holds shards that are
/// neither DONE nor FAILED. Pure; not thread-safe.
class HandBacks {
 public:
  /// So many hand-backs in a row without progress are one failure of the shard.
  static constexpr uint32_t kWithoutProgressMax = 3;

  /// Counts the hand-back under lease `token`, after `minibatches` of its run were handed out;
  /// returns whether the shard is to be charged. A repeat, or an older lease, changes nothing.
  bool Count(const ShardId& shard, LeaseToken token, uint32_t minibatches);
  /// The shard is DONE or FAILED: what comes later counts anew.
  void Forget(const ShardId& shard) { shards_.erase(shard); }

 private:
  struct Shard {
    LeaseToken newest;
    uint32_t best = 0;
    uint32_t without_progress = 0;
  };
  std::map<ShardId, Shard> shards_;
};

}  // namespace muster
