#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"

/// Records which job owns a folder of snapshots. A master deletes files that its manifests do not
/// name, so two jobs in one folder would delete each other's files. The first job marks the folder
/// with a small file, `OWNER`.
namespace muster {

struct SnapshotOwner {
  /// JournalHeader::job_id; empty: a job that has no journal yet.
  std::string job_id;
  // For people.
  std::string job;
  std::string state_directory;
};

/// Checks that the job may use `directory`; `named` are the files that its manifests name.
/// kFailedPrecondition says what to do: the marker belongs to another job, or there is no marker
/// but snapshots that this job does not know. In the job's own state directory, such snapshots are
/// its own. Changes nothing; the folder need not exist.
absl::Status CheckSnapshotDirectory(const std::string& directory, const SnapshotOwner& owner,
                                    const std::set<std::string>& named);

/// As above; then creates the folder and the marker if they are missing, synced. If two jobs come
/// at the same time, one gets it. In the job's state directory, a full disk is no error: training
/// there waits for space anyway, and the next start makes the marker.
absl::Status ClaimSnapshotDirectory(const std::string& directory, const SnapshotOwner& owner,
                                    const std::set<std::string>& named);

}  // namespace muster
