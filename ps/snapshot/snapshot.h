#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/engine/partition.h"
#include "ps/snapshot/chain.h"
#include "sharding/control.h"

namespace muster::ps {

/// The name of a snapshot's file below the snapshot directory; no other partition, owner epoch or
/// snapshot has it: "p00003/e12-s1.5-delta.sst".
std::string SnapshotFileName(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                             SnapshotKind kind);

/// Writes one image as one file: under a temporary name, synced, renamed, folders synced; so that
/// a name either does not exist or is whole, after a crash too. Blocks for the disk; any thread.
/// Errors name the path, say what to do (kResourceExhausted: disk full) and leave nothing behind;
/// kAlreadyExists when the name is taken, for a file that a manifest may list is never replaced.
absl::StatusOr<SnapshotFile> WriteSnapshot(const std::string& directory, PartitionId partition,
                                           OwnerEpoch epoch, SnapshotNumber number,
                                           const PartitionImage& image);

/// Reads the files of a manifest, base first, as Partition::Restore takes them; none for a manifest
/// without files. Blocks for the disk; any thread. kDataLoss when a file is missing, damaged,
/// truncated, or not what its name and the manifest say: the message names it and says what to do.
absl::StatusOr<std::vector<PartitionImage>> ReadChain(const std::string& directory,
                                                      PartitionId partition,
                                                      const Manifest& manifest);

}  // namespace muster::ps
