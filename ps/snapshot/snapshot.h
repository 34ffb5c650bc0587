#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "ps/engine/partition.h"
#include "ps/snapshot/chain.h"

namespace rocksdb {
class Env;
}

namespace muster::ps {

/// The name of a snapshot's file below the snapshot directory, "p00003/e12-s1.5-delta-<hash>.sst".
/// Partition, owner epoch and snapshot number make it unique; `hash` is the XXH3 of the file's
/// bytes, so that a manifest, which lists names, pins contents.
std::string SnapshotFileName(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                             SnapshotKind kind, uint64_t hash);

/// Writes one image as one file: under a temporary name, synced, renamed, folders synced. So even
/// after a crash, the file either does not exist or is complete. Blocks for the disk; any thread.
/// Errors name the path, say what to do (kResourceExhausted: disk full) and leave nothing behind. A
/// file that a manifest may list is never replaced, because other contents have another name. `env`
/// is for tests: RocksDB writes through it; null: the normal one.
absl::StatusOr<SnapshotFile> WriteSnapshot(const std::string& directory, PartitionId partition,
                                           OwnerEpoch epoch, SnapshotNumber number,
                                           const PartitionImage& image,
                                           rocksdb::Env* env = nullptr);

/// Reads the files of a manifest, base first, as Partition::Restore takes them; none for a manifest
/// without files. Blocks for the disk; any thread. kDataLoss when a file is missing, damaged,
/// truncated, or not what its name and the manifest say: the message names it and says what to do.
absl::StatusOr<std::vector<PartitionImage>> ReadChain(const std::string& directory,
                                                      PartitionId partition,
                                                      const Manifest& manifest);

}  // namespace muster::ps
