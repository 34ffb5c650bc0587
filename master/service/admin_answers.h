#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "master/core/master_core.h"
#include "proto/admin.pb.h"
#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"

/// The view of the core for operators: the model of the job (proto/status). Read-only. Functions
/// that read a core run on its owner's thread and copy. Longer work comes after.
namespace muster {

/// A status whose epochs lack the values of their metrics, which take long to compute.
struct StatusFacts {
  struct OfEpoch {
    size_t dataset = 0;  // its index in the status
    size_t epoch = 0;    // likewise
    std::shared_ptr<const ShardMetrics> metrics;
  };
  JobStatus status;
  std::vector<OfEpoch> metrics;
};
/// `at.wall` 0: not known, as of a job that does not run.
StatusFacts StatusFactsOf(const MasterCore& core, const std::string& job, StepTime at);
/// Computes them. Needs no core: any thread may.
JobStatus Complete(StatusFacts facts);
inline JobStatus StatusOf(const MasterCore& core, const std::string& job, StepTime at) {
  return Complete(StatusFactsOf(core, job, at));
}
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
/// Shorten a page so that it stays below the default limit of gRPC's clients (4 MiB). They need no
/// core, so any thread may call them.
void Trim(ShardPage* page);
void Trim(MasterEvents* page);
void Trim(PartitionList* page);
}  // namespace muster
