#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/words/types.h"

namespace muster {

/// Of `known` epochs, in order, those that may be thinned out, so that about three quarters of
/// `most` stay: the newest half in full, and of the older ones each 2^k-th, which are the curve of
/// the metrics over the whole job. With more epochs, k grows: what is in a curve was in every
/// earlier one. Requires most > 0. Pure.
std::vector<EpochIndex> OldEpochs(std::span<const EpochIndex> known, size_t most);

}  // namespace muster
