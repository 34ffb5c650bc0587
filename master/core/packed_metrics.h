#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sharding/metrics.h"

namespace muster {

/// ShardMetrics with the empty bins of its histograms left out: a shard fills few of them, and the
/// master keeps the metrics of every DONE shard until it is COMMITTED. A value.
struct PackedMetrics {
  struct Bin {
    uint32_t bin = 0;
    uint64_t positives = 0;
    uint64_t negatives = 0;
    friend bool operator==(const Bin&, const Bin&) = default;
  };
  /// Everything but the histograms.
  ShardMetrics scalars;
  /// Bins in ascending order.
  std::map<std::string, std::vector<Bin>> aucs;
  friend bool operator==(const PackedMetrics&, const PackedMetrics&) = default;
};

PackedMetrics Pack(ShardMetrics metrics);
ShardMetrics Unpack(const PackedMetrics& packed);

}  // namespace muster
