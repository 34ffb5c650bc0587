#pragma once

#include "base/words/types.h"
#include "sharding/done_shards.h"

namespace muster::testing {

inline ShardId Shard(uint32_t dataset, uint32_t epoch, uint64_t index) {
  return {DatasetId(dataset), EpochIndex(epoch), ShardIndex(index)};
}
inline DoneShard Done(uint64_t seq, const ShardId& shard) {
  return {DoneSeq(seq), shard, LeaseToken(MasterIncarnation(1), seq)};
}

}  // namespace muster::testing
