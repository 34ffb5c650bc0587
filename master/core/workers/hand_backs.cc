#include "master/core/workers/hand_backs.h"

#include "base/check.h"

namespace muster {

bool HandBacks::Count(const ShardId& shard, LeaseToken token, uint32_t minibatches) {
  Shard& counted = shards_[shard];
  if (token <= counted.newest) return false;
  counted.newest = token;
  if (minibatches > counted.best) {
    counted.best = minibatches;
    counted.without_progress = 0;
    return false;
  }
  MUSTER_CHECK(counted.without_progress < kWithoutProgressMax);
  if (++counted.without_progress < kWithoutProgressMax) return false;
  counted.without_progress = 0;
  return true;
}

}  // namespace muster
