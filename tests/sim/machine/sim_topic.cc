#include "tests/sim/machine/sim_topic.h"

#include <algorithm>

namespace muster::sim {

void SimTopic::Grow(Rng* rng) {
  uint64_t& end = ends_[rng->Below(kPartitions)];
  end = std::min(kOffsets, end + rng->Below(8));
}

void SimTopic::Forget(uint32_t partition, uint64_t before) {
  begins_[partition] = std::max(begins_[partition], std::min(before, ends_[partition]));
}

}  // namespace muster::sim
