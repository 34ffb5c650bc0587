#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "master/core/master_core.h"
#include "proto/admin.pb.h"
#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"

/// What operators see, out of the core: the model of the job (proto/status). Read-only.
namespace muster {

/// `at.wall` 0: not known, as of a job that does not run.
JobStatus StatusOf(const MasterCore& core, const std::string& job, StepTime at);
/// kInvalidArgument for an unknown state or a limit out of range. `work_of` tells what a shard
/// covers.
absl::StatusOr<ShardPage> ShardsOf(const MasterCore& core, TimePoint now,
                                   const std::function<ShardWork(const ShardId&)>& work_of,
                                   const v1::ListShardsRequest& request);
/// kNotFound when the job has no such dataset or epoch; kInvalidArgument when the epoch has no
/// shard `begin`.
absl::StatusOr<ShardMap> ShardMapOf(const MasterCore& core, const v1::GetShardMapRequest& request);
/// kInvalidArgument for a limit out of range.
absl::StatusOr<MasterEvents> EventsOf(const MasterCore& core, const v1::ListEventsRequest& request);
/// kInvalidArgument for a limit out of range.
absl::StatusOr<PartitionList> PartitionsOf(const MasterCore& core, TimePoint now,
                                           const v1::ListPartitionsRequest& request);
void FillManifest(const MasterCore& core, const std::string& snapshot_directory,
                  v1::GetManifestResponse* to);

}  // namespace muster
