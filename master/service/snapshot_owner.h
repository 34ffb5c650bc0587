#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "store/object_store.h"

/// Records which job owns a place for snapshots. A master deletes files that its manifests do not
/// name, so two jobs in one place would delete each other's files. The first job marks the place
/// with a small file, `OWNER`.
namespace muster {

struct SnapshotOwner {
  /// JournalHeader::job_id; empty: a job that has no journal yet.
  std::string job_id;
  // For people.
  std::string job;
  std::string state_directory;
};

/// Checks that the job may use the store; `named` are the files that its manifests name.
/// kFailedPrecondition says what to do: the marker belongs to another job, or there is no marker
/// but snapshots that this job does not know. In the job's own state directory, such snapshots are
/// its own. kUnavailable: the store is away. Changes nothing; the folder need not exist.
absl::Status CheckSnapshotDirectory(ObjectStore* store, const SnapshotOwner& owner,
                                    const std::set<std::string>& named);

/// After a restart, the run has claimed the place already. Whether the error of a new look says
/// only that nobody can look now: the store is away, the credentials have expired, the clock is
/// off.
bool IsOnlyUnseen(const absl::Status& claimed);

/// As CheckSnapshotDirectory; then creates the marker if it is missing. If two jobs come
/// at the same time, one gets it. In the job's state directory, a full disk is no error: training
/// there waits for space anyway, and the next start makes the marker.
absl::Status ClaimSnapshotDirectory(ObjectStore* store, const SnapshotOwner& owner,
                                    const std::set<std::string>& named);

}  // namespace muster
