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

/// What the state directory of a job tells when no master runs: the answers of AdminService's
/// questions, out of the journal and the indexes alone. Nothing is locked, changed or added, and
/// the data need not be there any more. What only a running master knows (leases, heartbeats, rows)
/// is empty; nodes are shown as exited, and a job that was under way as STOPPED. Immutable.
class JobArchive {
 public:
  /// `job`: as it ran; its state_directory is where that lies now. Where the snapshots lie is the
  /// journal's word unless `job.snapshot_directory` says it. kNotFound: no run there came so far as
  /// to have a journal. kFailedPrecondition: the journal is another job's.
  static absl::StatusOr<std::unique_ptr<JobArchive>> Open(const JobSpec& job);

  JobStatus Status() const;
  absl::StatusOr<ShardPage> Shards(const v1::ListShardsRequest& request) const;
  absl::StatusOr<ShardMap> MapOfShards(const v1::GetShardMapRequest& request) const;
  absl::StatusOr<MasterEvents> Events(const v1::ListEventsRequest& request) const;
  absl::StatusOr<PartitionList> Partitions(const v1::ListPartitionsRequest& request) const;
  void FillManifest(v1::GetManifestResponse* to) const;

 private:
  JobArchive(std::string job, std::string snapshot_directory,
             std::unique_ptr<SourceCatalog> catalog, std::unique_ptr<MasterCore> core);

  const std::string job_;
  const std::string snapshot_directory_;
  const std::unique_ptr<SourceCatalog> catalog_;
  const std::unique_ptr<MasterCore> core_;
};

}  // namespace muster
