#pragma once

#include <cstdint>

#include "base/interval_set.h"
#include "base/words/types.h"
#include "proto/messages/metrics.h"

namespace muster {

struct EpochRecord {
  DatasetId dataset;
  EpochIndex epoch;
  IntervalSet committed;
  uint64_t records_committed = 0;
  ShardMetrics metrics;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset);
    f(2, "epoch", s.epoch);
    f(3, "committed", s.committed);
    f(4, "records_committed", s.records_committed);
    f(5, "metrics", s.metrics);
  }
};

struct EraseEpoch {
  DatasetId dataset;
  EpochIndex epoch;
};
/// Of a dataset whose epochs were thinned out: the epochs of which every shard is COMMITTED. Those
/// that were thinned out have no EpochRecord.
struct WholeEpochsRecord {
  DatasetId dataset;
  IntervalSet epochs;
  uint64_t rejected_records = 0;  // of those without an EpochRecord
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset);
    f(2, "epochs", s.epochs);
    f(3, "rejected_records", s.rejected_records);
  }
};

}  // namespace muster
