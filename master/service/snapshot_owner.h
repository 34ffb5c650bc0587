#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"

/// Whose a folder of snapshots is. A master deletes what its own manifests do not name, so two jobs
/// in one folder would delete each other's: the first one marks it with a small file, `OWNER`.
namespace muster {

struct SnapshotOwner {
  /// JournalHeader::job_id; empty: a job that has no journal yet.
  std::string job_id;
  // For people.
  std::string job;
  std::string state_directory;
};

/// Whether the job may use `directory`; `named` are the files that its manifests name.
/// kFailedPrecondition, saying what to do: the marker is another job's, or there is none but
/// snapshots that this job knows nothing of; these are its own where the folder lies in its state
/// directory. Changes nothing; the folder need not exist.
absl::Status CheckSnapshotDirectory(const std::string& directory, const SnapshotOwner& owner,
                                    const std::set<std::string>& named);

/// As above; then makes the folder and the marker when there is none, synced. Of two jobs that come
/// at the same time one gets it. A full disk is no obstacle inside the job's state directory: what
/// is trained there waits for room anyway, and the next start makes the marker.
absl::Status ClaimSnapshotDirectory(const std::string& directory, const SnapshotOwner& owner,
                                    const std::set<std::string>& named);

}  // namespace muster
