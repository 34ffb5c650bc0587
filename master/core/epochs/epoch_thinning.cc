#include "master/core/epochs/epoch_thinning.h"

#include <algorithm>

#include "base/check.h"

namespace muster {

std::vector<EpochIndex> OldEpochs(std::span<const EpochIndex> known, size_t most) {
  MUSTER_CHECK(most > 0);
  if (known.empty()) return {};
  const uint64_t all = uint64_t{known.back().value()} + 1;
  const uint64_t before = all - std::min<uint64_t>(all, (most + 1) / 2);
  const uint64_t points = most / 4;
  uint64_t stride = 1;
  while (points > 0 && (before + stride - 1) / stride > points) stride *= 2;
  std::vector<EpochIndex> old;
  for (const EpochIndex epoch : known) {
    const bool in_curve = points > 0 && epoch.value() % stride == 0;
    if (epoch.value() < before && !in_curve) old.push_back(epoch);
  }
  return old;
}

}  // namespace muster
