#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "master/core/master_core.h"
#include "master/sources/source_catalog.h"
#include "proto/admin.pb.h"
#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"

namespace muster {

/// Answers the questions of AdminService from a job's state directory when no master runs: from the
/// journal and the indexes alone. It locks, changes and adds nothing, and does not need the data.
/// Values that only a running master knows (leases, heartbeats, rows) are empty. Nodes are shown as
/// exited, and a job that was running as STOPPED. Immutable.
class JobArchive {
 public:
  /// `job` is the job as it ran; its state_directory is the current place. The snapshots are where
  /// the
  /// journal says, unless `job.snapshot_directory` is set. kNotFound: no run there has made a
  /// journal. kFailedPrecondition: the journal belongs to another job.
  static absl::StatusOr<std::unique_ptr<JobArchive>> Open(const JobSpec& job);

  /// kFailedPrecondition, as of the shards, too: an earlier version of Muster has cut the shards in
  /// another way. Events, partitions and weights are still there.
  absl::StatusOr<JobStatus> Status() const;
  absl::StatusOr<ShardPage> Shards(const v1::ListShardsRequest& request) const;
  absl::StatusOr<ShardMap> MapOfShards(const v1::GetShardMapRequest& request) const;
  absl::StatusOr<MasterEvents> Events(const v1::ListEventsRequest& request) const;
  absl::StatusOr<PartitionList> Partitions(const v1::ListPartitionsRequest& request) const;
  /// kNotFound if the weights of the epoch are not kept.
  absl::StatusOr<v1::GetManifestResponse> ManifestOf(const v1::GetManifestRequest& request) const;

 private:
  JobArchive(std::string job, std::string snapshot_directory,
             absl::StatusOr<std::unique_ptr<SourceCatalog>> catalog,
             std::unique_ptr<MasterCore> core);

  const std::string job_;
  const std::string snapshot_directory_;
  const absl::StatusOr<std::unique_ptr<SourceCatalog>> catalog_;
  const std::unique_ptr<MasterCore> core_;
};

}  // namespace muster
