#include "cli/state/stored_job.h"

#include <filesystem>
#include <utility>

#include "base/status.h"
#include "job/file/load_job.h"
#include "master/service/job_archive.h"

namespace muster {
namespace {

class StoredJobClient final : public AdminClient {
 public:
  StoredJobClient(std::string directory, std::unique_ptr<JobArchive> archive)
      : directory_(std::move(directory)), archive_(std::move(archive)) {}

  void End() override {}  // no call waits
  absl::StatusOr<JobStatus> GetStatus() override { return archive_->Status(); }
  absl::StatusOr<ShardPage> ListShards(const v1::ListShardsRequest& request) override {
    return archive_->Shards(request);
  }
  absl::StatusOr<ShardMap> GetShardMap(const v1::GetShardMapRequest& request) override {
    return archive_->MapOfShards(request);
  }
  absl::StatusOr<MasterEvents> ListEvents(const v1::ListEventsRequest& request) override {
    return archive_->Events(request);
  }
  absl::StatusOr<PartitionList> ListPartitions(const v1::ListPartitionsRequest& request) override {
    return archive_->Partitions(request);
  }
  absl::StatusOr<v1::GetManifestResponse> GetManifest(
      const v1::GetManifestRequest& request) override {
    return archive_->ManifestOf(request);
  }
  absl::StatusOr<v1::RetryShardsResponse> RetryShards(const v1::RetryShardsRequest&) override {
    return NotRunning();
  }
  absl::StatusOr<v1::DrainNodeResponse> DrainNode(const v1::DrainNodeRequest&) override {
    return NotRunning();
  }
  absl::Status ResumeNode(const v1::ResumeNodeRequest&) override { return NotRunning(); }
  absl::Status ReportNode(const v1::ReportNodeRequest&) override { return NotRunning(); }
  absl::StatusOr<v1::JoinNodeResponse> JoinNode(const v1::JoinNodeRequest&) override {
    return NotRunning();
  }
  absl::Status Drain() override { return NotRunning(); }
  absl::Status Cancel(const v1::CancelRequest&) override { return NotRunning(); }

 private:
  absl::Status NotRunning() const {
    return absl::FailedPreconditionError(
        fmt::format("no job runs with the state directory {}", directory_));
  }

  const std::string directory_;
  const std::unique_ptr<JobArchive> archive_;
};

std::string DefaultSnapshots(const std::string& state_directory) {
  return state_directory + "/snapshots";
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdminClient>> OpenStoredJob(const JobTarget& target) {
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(target));
  if (!std::filesystem::exists(state.journal())) {
    return absl::NotFoundError(
        fmt::format("no job ever ran with the state directory {}", state.path()));
  }
  // The copy is the job file of the run, but its relative paths are wrong here. If a master was
  // started by hand, there is no copy.
  const bool copied = std::filesystem::exists(state.job_copy()) || !target.state_directory.empty();
  MUSTER_ASSIGN_OR_RETURN(LoadedJob job,
                          LoadJob(copied ? state.job_copy() : JobFileOf(target), ""));
  if (target.state_directory.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const LoadedJob named, LoadJob(JobFileOf(target), ""));
    job.spec.snapshot_directory = named.spec.snapshot_directory;
  } else if (job.spec.snapshot_directory == DefaultSnapshots(job.spec.state_directory) &&
             std::filesystem::exists(DefaultSnapshots(state.path()))) {
    job.spec.snapshot_directory = DefaultSnapshots(state.path());
  } else {
    // The journal names the folder of the snapshots. In a cluster, snapshots have a volume of their
    // own.
    job.spec.snapshot_directory.clear();
  }
  job.spec.state_directory = state.path();
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<JobArchive> archive, JobArchive::Open(job.spec));
  return std::make_unique<StoredJobClient>(state.path(), std::move(archive));
}

}  // namespace muster
