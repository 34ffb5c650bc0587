#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "master/core/durable_state.h"
#include "store/object_store.h"

/// The master's access to the snapshot files of a job: it only deletes them. Errors are logged,
/// because a file that stays only costs space.
namespace muster {

/// The names, relative to the place, of the files that the manifests and the checkpoint of a group
/// in `state` name.
std::set<std::string> NamedSnapshots(const DurableState& state);

/// The existing snapshot files: "p3/17.sst", and pieces of a group's state, "group/r1-s9-a2-c0-1".
/// Sorted.
absl::StatusOr<std::vector<std::string>> ListSnapshots(ObjectStore* store);

/// Removes files by their names. Names that lead out of the place are left alone. Returns what is
/// still there; failures are logged, unless the store is away.
ObjectStore::Undeleted DeleteSnapshotFiles(ObjectStore* store,
                                           const std::vector<std::string>& names);

/// The files that no manifest names: "*.sst" and temporary files of snapshots ("*.tmp*") in the
/// partitions' folders ("p<number>"), and pieces of a group's state; but none that a master of
/// incarnation `own` or newer has asked for (master/core/orphans.h), with `newest`, the newest
/// attempt of the group in the journal. Ends unfinished uploads of such files. Call it only when no
/// server or member of an older run lives: it may have written a file that its next report names.
/// Names decide, so this master may serve meanwhile.
std::vector<std::string> OrphanSnapshots(ObjectStore* store, const std::set<std::string>& named,
                                         MasterIncarnation own, AttemptNumber newest = {});

}  // namespace muster
