#include "cli/run/run_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "cli/state/state_directory.h"
#include "host/resources.h"
#include "job/file/load_job.h"
#include "master/journal/fenced_journal.h"
#include "master/service/snapshot_files.h"
#include "master/service/snapshot_owner.h"
#include "store/names/place.h"
#include "store/object_store.h"

namespace muster {
namespace {

constexpr std::string_view kSnapshotField = "spec.snapshots.directory";

}  // namespace

absl::Status CheckDirectories(const LoadedJob& job, const ProgressFn& progress) {
  const StateDirectory state(job.spec.state_directory);
  for (const std::string& folder : {state.path(), state.run(), state.logs(), state.journal()}) {
    MUSTER_RETURN_IF_ERROR(CouldWrite(folder, "spec.stateDirectory"));
  }
  if (!IsS3Place(job.spec.snapshot_directory)) {
    MUSTER_RETURN_IF_ERROR(CouldWrite(job.spec.snapshot_directory, kSnapshotField));
  }
  MUSTER_RETURN_IF_ERROR(StateLock::CheckFree(state));
  SnapshotOwner owner{"", job.spec.name, state.path()};
  std::set<std::string> named;
  absl::StatusOr<StoredJournal> stored = ReadFencedJournal(state.journal());
  if (stored.ok()) {
    // Only the header is checked here. The data are checked below, file by file.
    MUSTER_RETURN_IF_ERROR(CheckHeader(
        stored->header, {job.spec.name, FixedFields(job.spec), stored->header.sources, ""},
        state.journal()));
    owner.job_id = stored->header.job_id;
    named = NamedSnapshots(stored->state);
  } else if (!absl::IsNotFound(stored.status())) {
    return stored.status();
  }
  MUSTER_RETURN_IF_ERROR(SourceCatalog::Check(job.spec, progress));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store,
                          OpenStore(job.spec.snapshot_directory));
  if (IsS3Place(job.spec.snapshot_directory)) {
    MUSTER_RETURN_IF_ERROR_PREPEND(store->CheckWritable(), kSnapshotField);
  }
  return CheckSnapshotDirectory(store.get(), owner, named);
}

std::string LimitsBeyond(const JobSpec& job, uint64_t machine_bytes) {
  if (machine_bytes == 0) return "";
  // This uses floating point, because the products may be beyond 64 bits.
  const auto bytes = [](const ReplicaSpec& role, uint32_t replicas) {
    return static_cast<double>(role.limits.memory_bytes.value_or(0)) * replicas;
  };
  const double all =
      bytes(job.ps, job.ps.replicas - job.servers_joined) + bytes(job.worker, job.worker.replicas);
  if (all <= static_cast<double>(machine_bytes)) return "";
  return fmt::format(
      "the memory limits of the job's nodes (spec.replicaSpecs.*.resources.limits.memory) add up "
      "to {}, but this machine has {}: the kernel may kill any node, or another program, before a "
      "node reaches its limit",
      BytesText(static_cast<uint64_t>(std::min(all, 1e18))), BytesText(machine_bytes));
}

absl::Status MakeSnapshotsWritable(const JobSpec& job) {
  if (!IsS3Place(job.snapshot_directory)) {
    return MakeWritable(job.snapshot_directory, kSnapshotField);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store,
                          OpenStore(job.snapshot_directory));
  MUSTER_RETURN_IF_ERROR_PREPEND(store->CheckWritable(), kSnapshotField);
  return absl::OkStatus();
}

std::string JobIdOf(const StateDirectory& state, const std::string& fresh) {
  const absl::StatusOr<JournalHeader> header = ReadFencedHeader(state.journal());
  if (absl::IsNotFound(header.status())) return fresh;
  if (!header.ok()) return "";
  return header->job_id.empty() ? fresh : header->job_id;
}

StartsBefore StartsOf(const StateDirectory& state, const std::string& run_id) {
  const absl::StatusOr<StoredJournal> stored = ReadFencedJournal(state.journal());
  if (!stored.ok() || !stored->state.meta.has_value() || stored->state.meta->run_id != run_id) {
    return {};
  }
  const auto starts = [&](NodeRole role) {
    const auto node = stored->state.nodes.find(std::string(ToString(role)));
    return node == stored->state.nodes.end()
               ? 0
               : static_cast<uint32_t>(node->second.told_start.value());
  };
  return {.master = starts(NodeRole::kMaster), .scaler = starts(NodeRole::kScaler)};
}

}  // namespace muster
