#include "tests/sim/machine/sim_topic.h"

#include <algorithm>

namespace muster::sim {

void SimTopic::Grow(Rng* rng) {
  uint64_t& end = ends_[rng->Below(kPartitions)];
  end = std::min(kOffsets, end + rng->Below(8));
}

void SimTopic::Forget(uint32_t partition, uint64_t before) {
  if (hid_[partition]) return;
  begins_[partition] = std::max(begins_[partition], std::min(before, ends_[partition]));
}

uint64_t SimTopic::Hide(uint32_t partition, Rng* rng) {
  hid_[partition] = true;
  return std::min(begins_[partition] + rng->Below(kOffsets), ends_[partition]);
}

bool SimTopic::open() const {
  return std::ranges::any_of(ends_, [](uint64_t end) { return end < kOffsets; });
}

}  // namespace muster::sim
