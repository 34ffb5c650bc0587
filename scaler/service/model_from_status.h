#pragma once

#include <string>

#include "proto/admin.pb.h"
#include "scaler/model/model.h"

/// What the master says, as the REST interface shows it. Pure.
namespace muster::scaler {

/// State, reason, counters; progress without rate and remaining time, which need more than one
/// status. `seen_wall_us` and what is of the scaler are the caller's.
rest::Job JobFromStatus(const v1::JobStatus& status);
rest::DatasetList DatasetsFromStatus(const v1::JobStatus& status);
/// Without limits and usage, which the master does not know.
rest::Node NodeFromStatus(const v1::NodeStatus& status);
rest::Shard ShardFromStatus(const v1::ShardStatus& status);
rest::Partition PartitionFromStatus(const v1::PartitionStatus& status);
/// Appends the runs of `page`, which begins at the shard where the runs before it end.
void AppendShardRuns(const v1::GetShardMapResponse& page, rest::ShardMap* map);

}  // namespace muster::scaler
