#pragma once

#include <functional>

#include "absl/status/status.h"
#include "base/clock.h"
#include "master/core/master_core.h"
#include "proto/admin.pb.h"

/// What operators see, out of the core. Read-only.
namespace muster {

/// `at.wall` 0: not known, as of a job that does not run.
void FillStatus(const MasterCore& core, const std::string& job, StepTime at, v1::JobStatus* to);
/// kInvalidArgument for an unknown state or a limit out of range. `work_of` tells what a shard
/// covers.
absl::Status FillShards(const MasterCore& core, TimePoint now,
                        const std::function<ShardWork(const ShardId&)>& work_of,
                        const v1::ListShardsRequest& request, v1::ListShardsResponse* to);
/// kNotFound when the job has no such dataset or epoch; kInvalidArgument when the epoch has no
/// shard `begin`.
absl::Status FillShardMap(const MasterCore& core, const v1::GetShardMapRequest& request,
                          v1::GetShardMapResponse* to);
absl::Status FillEvents(const MasterCore& core, const v1::ListEventsRequest& request,
                        v1::ListEventsResponse* to);
/// kInvalidArgument for a limit out of range.
absl::Status FillPartitions(const MasterCore& core, TimePoint now,
                            const v1::ListPartitionsRequest& request,
                            v1::ListPartitionsResponse* to);
void FillManifest(const MasterCore& core, const std::string& snapshot_directory,
                  v1::GetManifestResponse* to);

}  // namespace muster
