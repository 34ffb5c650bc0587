#pragma once

#include "master/core/master_core.h"
#include "proto/status/dataset_status.h"
#include "proto/status/shard_status.h"

/// The view of topics for operators. Read-only. Internal to master/service.
namespace muster {

/// `at`: now; a wall time of 0: not known, and neither are the lags in time.
StreamStatus StreamOf(const MasterCore& core, DatasetId dataset, StepTime at);
/// Adds the range of a shard of a stream. The ranges of COMMITTED shards are no longer known.
void DescribeRange(const Ledger& ledger, const ShardId& shard, ShardStatus* to);
/// The most records that the dataset is known to have so far: the trained records plus the offsets
/// not trained yet.
uint64_t RecordsSoFar(const Ledger& ledger, DatasetId dataset);

}  // namespace muster
