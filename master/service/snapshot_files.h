#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "master/core/durable_state.h"

/// The master's access to the snapshot files of a job: it only deletes them. Errors are logged,
/// because a file that stays only costs space.
namespace muster {

/// The names, relative to the directory, of the files that the manifests of `state` name.
std::set<std::string> NamedSnapshots(const DurableState& state);

/// The existing snapshot files: "p3/17.sst", sorted.
std::vector<std::string> ListSnapshots(const std::string& directory);

/// Removes files by their names relative to `directory`. Names that lead out of it are left alone.
void DeleteSnapshotFiles(const std::string& directory, const std::vector<std::string>& names);

/// Removes the files that no manifest names: "*.sst" and temporary files of snapshots ("*.tmp*") in
/// the partitions' folders ("p<number>"). Call it only when no server of this job lives: a live
/// server may have written a file that its next report names. Returns how many were removed.
uint64_t DeleteOrphanSnapshots(const std::string& directory, const std::set<std::string>& named);

}  // namespace muster
