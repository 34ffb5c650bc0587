#include "master/service/job_archive.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/status.h"
#include "master/journal/fenced_journal.h"
#include "master/service/admin_answers.h"
#include "master/service/manifest_answers.h"
#include "master/service/master_main.h"
#include "proto/messages/node_state.h"

namespace muster {
namespace {

constexpr char kExitNotSeen[] = "not seen";

/// Leaves out all that belongs to shards, which cannot be told.
void DropShards(DurableState* state) {
  state->done.clear();
  state->epochs.clear();
  state->failures.clear();
  state->streams.clear();
  state->stream_positions.clear();
  state->stream_shards.clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobArchive>> JobArchive::Open(const JobSpec& job) {
  const std::string directory = job.state_directory + "/journal";
  MUSTER_ASSIGN_OR_RETURN(StoredJournal stored, ReadFencedJournal(directory));
  absl::StatusOr<std::unique_ptr<SourceCatalog>> catalog = SourceCatalog::OpenKept(job);
  const bool cut_otherwise = absl::IsFailedPrecondition(catalog.status());
  if (!catalog.ok() && !cut_otherwise) return catalog.status();
  const JournalHeader header{job.name, FixedFields(job),
                             cut_otherwise ? stored.header.sources : (*catalog)->Fingerprint()};
  MUSTER_RETURN_IF_ERROR(CheckHeader(stored.header, header, directory));
  CoreOptions options =
      CoreOptionsOf({.job = job}, cut_otherwise ? std::vector<DatasetPlan>() : (*catalog)->Plans());
  if (cut_otherwise) DropShards(&stored.state);
  MUSTER_RETURN_IF_ERROR(MasterCore::CheckFits(options, stored.state));
  std::string snapshots = job.snapshot_directory;
  if (snapshots.empty() && stored.state.meta.has_value()) {
    snapshots = stored.state.meta->snapshot_directory;
  }
  auto core = std::make_unique<MasterCore>(std::move(options), std::move(stored.state),
                                           MasterCore::AsFound{});
  return std::unique_ptr<JobArchive>(
      new JobArchive(job.name, std::move(snapshots), std::move(catalog), std::move(core)));
}

JobArchive::JobArchive(std::string job, std::string snapshot_directory,
                       absl::StatusOr<std::unique_ptr<SourceCatalog>> catalog,
                       std::unique_ptr<MasterCore> core)
    : job_(std::move(job)),
      snapshot_directory_(std::move(snapshot_directory)),
      catalog_(std::move(catalog)),
      core_(std::move(core)) {}

absl::StatusOr<JobStatus> JobArchive::Status() const {
  MUSTER_RETURN_IF_ERROR(catalog_.status());
  JobStatus status = StatusOf(*core_, job_, StepTime{});
  const bool stopped = !IsTerminal(core_->state());
  if (stopped) status.state = JobState::kStopped;
  for (NodeStatus& node : status.nodes) {
    if (node.state == NodeState::kExited) continue;
    // It ended with the run. If the run was killed, nothing recorded how.
    node.state = NodeState::kExited;
    if (stopped) node.last_exit = kExitNotSeen;
  }
  return status;
}

absl::StatusOr<ShardPage> JobArchive::Shards(const v1::ListShardsRequest& request) const {
  MUSTER_RETURN_IF_ERROR(catalog_.status());
  return ShardsOf(
      *core_, TimePoint{}, [this](const ShardId& shard) { return (*catalog_)->WorkOf(shard); },
      request);
}

absl::StatusOr<MasterEvents> JobArchive::Events(const v1::ListEventsRequest& request) const {
  return EventsOf(*core_, request);
}

absl::StatusOr<ShardMap> JobArchive::MapOfShards(const v1::GetShardMapRequest& request) const {
  MUSTER_RETURN_IF_ERROR(catalog_.status());
  return ShardMapOf(*core_, request);
}

absl::StatusOr<PartitionList> JobArchive::Partitions(
    const v1::ListPartitionsRequest& request) const {
  MUSTER_ASSIGN_OR_RETURN(PartitionList page, PartitionsOf(*core_, TimePoint{}, request));
  for (PartitionStatus& partition : page.partitions) partition.state = "unowned";
  return page;
}

absl::StatusOr<v1::GetManifestResponse> JobArchive::ManifestOf(
    const v1::GetManifestRequest& request) const {
  MUSTER_ASSIGN_OR_RETURN(const ManifestFacts facts, KeptManifestOf(*core_, request));
  v1::GetManifestResponse response;
  FillManifest(facts, snapshot_directory_, &response);
  return response;
}

}  // namespace muster
