#include "cli/run/run_checks.h"

#include <set>
#include <string>

#include "base/status.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"
#include "master/journal/rocksdb_journal.h"
#include "master/service/snapshot_files.h"
#include "master/service/snapshot_owner.h"

namespace muster {

absl::Status CheckDirectories(const LoadedJob& job, const ProgressFn& progress) {
  const StateDirectory state(job.spec.state_directory);
  for (const std::string& folder : {state.path(), state.run(), state.logs(), state.journal()}) {
    MUSTER_RETURN_IF_ERROR(CouldWrite(folder, "spec.stateDirectory"));
  }
  MUSTER_RETURN_IF_ERROR(CouldWrite(job.spec.snapshot_directory, "spec.snapshots.directory"));
  MUSTER_RETURN_IF_ERROR(StateLock::CheckFree(state));
  SnapshotOwner owner{"", job.spec.name, state.path()};
  std::set<std::string> named;
  absl::StatusOr<StoredJournal> stored = ReadRocksdbJournal(state.journal());
  if (stored.ok()) {
    // The data are checked below, file by file.
    MUSTER_RETURN_IF_ERROR(CheckHeader(
        stored->header, {job.spec.name, FixedFields(job.spec), stored->header.sources, ""},
        state.journal()));
    owner.job_id = stored->header.job_id;
    named = NamedSnapshots(stored->state);
  } else if (!absl::IsNotFound(stored.status())) {
    return stored.status();
  }
  MUSTER_RETURN_IF_ERROR(SourceCatalog::Check(job.spec, progress));
  return CheckSnapshotDirectory(job.spec.snapshot_directory, owner, named);
}

std::string JobIdOf(const StateDirectory& state, const std::string& fresh) {
  const absl::StatusOr<JournalHeader> header = ReadRocksdbHeader(state.journal());
  if (absl::IsNotFound(header.status())) return fresh;
  if (!header.ok()) return "";
  return header->job_id.empty() ? fresh : header->job_id;
}

}  // namespace muster
