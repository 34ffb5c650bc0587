#include "master/core/packed_metrics.h"

#include <utility>

namespace muster {

PackedMetrics Pack(ShardMetrics metrics) {
  PackedMetrics packed;
  for (const auto& [name, histogram] : metrics.aucs) {
    std::vector<PackedMetrics::Bin>& bins = packed.aucs[name];
    for (uint32_t bin = 0; bin < histogram.positives.size(); ++bin) {
      const uint64_t positives = histogram.positives[bin], negatives = histogram.negatives[bin];
      if (positives != 0 || negatives != 0) bins.push_back({bin, positives, negatives});
    }
    bins.shrink_to_fit();
  }
  metrics.aucs.clear();
  packed.scalars = std::move(metrics);
  return packed;
}

ShardMetrics Unpack(const PackedMetrics& packed) {
  ShardMetrics metrics = packed.scalars;
  for (const auto& [name, bins] : packed.aucs) {
    AucHistogram& histogram = metrics.aucs[name];
    histogram.positives.resize(AucHistogram::kBins);
    histogram.negatives.resize(AucHistogram::kBins);
    for (const PackedMetrics::Bin& bin : bins) {
      histogram.positives[bin.bin] = bin.positives;
      histogram.negatives[bin.bin] = bin.negatives;
    }
  }
  return metrics;
}

}  // namespace muster
