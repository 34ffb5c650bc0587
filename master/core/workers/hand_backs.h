#pragma once

#include <cstdint>
#include <map>

#include "base/words/types.h"

namespace muster {

/// Counts how often trainers handed shards back before their end. A hand-back is *progress* if its
/// run got more minibatches than every earlier run that was handed back. A shard has a limited
/// number of minibatches, so progress must end. Only hand-backs without progress are counted.
///
/// It is not journaled; the failures that follow from it are. It knows only shards that are neither
/// DONE nor FAILED. Pure; not thread-safe.
class HandBacks {
 public:
  /// This many hand-backs in a row without progress are one failure of the shard.
  static constexpr uint32_t kWithoutProgressMax = 3;

  /// Counts the hand-back under lease `token`, after its run got `minibatches`. Returns true if it
  /// completes a failure of the shard. A repeat, or an older lease, changes nothing.
  bool Count(const ShardId& shard, LeaseToken token, uint32_t minibatches);
  /// The shard is DONE or FAILED: its count starts again at 0.
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
