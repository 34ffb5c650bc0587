// What planted bugs do instead of what the sources do, where a condition does not say it.
#include <algorithm>

#include "base/planted_bug.h"
#include "master/core/partition_table.h"

namespace muster {

/// min_cut_ is the largest cut.
bool PartitionTable::CommitAtMaxCut() {
  if (!MUSTER_PLANTED(kCommitAtMaxCut)) return false;
  for (const Partition& partition : partitions_) {
    min_cut_ = std::max(min_cut_, partition.manifest.cut);
  }
  return true;
}

}  // namespace muster
