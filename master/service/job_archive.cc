#include "master/service/job_archive.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/status.h"
#include "master/journal/rocksdb_journal.h"
#include "master/service/admin_answers.h"
#include "master/service/master_main.h"
#include "proto/messages/node_state.h"

namespace muster {
namespace {

constexpr char kExitNotSeen[] = "not seen";

}  // namespace

absl::StatusOr<std::unique_ptr<JobArchive>> JobArchive::Open(const JobSpec& job) {
  const std::string directory = job.state_directory + "/journal";
  MUSTER_ASSIGN_OR_RETURN(StoredJournal stored, ReadRocksdbJournal(directory));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<SourceCatalog> catalog, SourceCatalog::OpenKept(job));
  const JournalHeader header{job.name, FixedFields(job), catalog->Fingerprint()};
  MUSTER_RETURN_IF_ERROR(CheckHeader(stored.header, header, directory));
  CoreOptions options = CoreOptionsOf({.job = job}, catalog->Plans());
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
                       std::unique_ptr<SourceCatalog> catalog, std::unique_ptr<MasterCore> core)
    : job_(std::move(job)),
      snapshot_directory_(std::move(snapshot_directory)),
      catalog_(std::move(catalog)),
      core_(std::move(core)) {}

void JobArchive::FillStatus(v1::JobStatus* to) const {
  muster::FillStatus(*core_, job_, StepTime{}, to);
  const bool stopped = !IsTerminal(core_->state());
  if (stopped) to->set_state(v1::JOB_STATE_STOPPED);
  for (v1::NodeStatus& node : *to->mutable_nodes()) {
    if (node.state() == ToString(NodeState::kExited)) continue;
    // It ended with the run; of one that was killed nobody was left to say how.
    node.set_state(std::string(ToString(NodeState::kExited)));
    if (stopped) node.set_last_exit(kExitNotSeen);
  }
}

absl::Status JobArchive::FillShards(const v1::ListShardsRequest& request,
                                    v1::ListShardsResponse* to) const {
  return muster::FillShards(
      *core_, TimePoint{}, [this](const ShardId& shard) { return catalog_->WorkOf(shard); },
      request, to);
}

absl::Status JobArchive::FillEvents(const v1::ListEventsRequest& request,
                                    v1::ListEventsResponse* to) const {
  return muster::FillEvents(*core_, request, to);
}

absl::Status JobArchive::FillShardMap(const v1::GetShardMapRequest& request,
                                      v1::GetShardMapResponse* to) const {
  return muster::FillShardMap(*core_, request, to);
}

absl::Status JobArchive::FillPartitions(const v1::ListPartitionsRequest& request,
                                        v1::ListPartitionsResponse* to) const {
  MUSTER_RETURN_IF_ERROR(muster::FillPartitions(*core_, TimePoint{}, request, to));
  for (v1::PartitionStatus& partition : *to->mutable_partitions()) partition.set_state("unowned");
  return absl::OkStatus();
}

void JobArchive::FillManifest(v1::GetManifestResponse* to) const {
  muster::FillManifest(*core_, snapshot_directory_, to);
}

}  // namespace muster
