#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "ps/engine/partition.h"
#include "ps/snapshot/chain.h"
#include "store/object_store.h"

namespace rocksdb {
class Env;
}

namespace muster::ps {

/// The name of a snapshot's object in its store, "p00003/e12-s1.5-delta-<hash>.sst". Partition,
/// owner epoch and snapshot number make it unique; `hash` is the XXH3 of the file's bytes, so that
/// a manifest, which lists names, pins contents.
std::string SnapshotFileName(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                             SnapshotKind kind, uint64_t hash);

/// Writes one image as one object: to a local file, synced, which the store then publishes. So even
/// after a crash, the object either does not exist or is complete. Blocks; any thread. Errors name
/// the place, say what to do (kResourceExhausted: disk full; kUnavailable: the store is away) and
/// leave nothing behind. An object that a manifest may list is never replaced, because other
/// contents have another name. `env` is for tests: RocksDB writes through it; null: the normal one.
absl::StatusOr<SnapshotFile> WriteSnapshot(ObjectStore* store, PartitionId partition,
                                           OwnerEpoch epoch, SnapshotNumber number,
                                           const PartitionImage& image,
                                           rocksdb::Env* env = nullptr);

/// Reads the files of a manifest, base first, as Partition::Restore takes them; none for a manifest
/// without files. Blocks; any thread. kDataLoss when a file is missing, damaged, truncated, or not
/// what its name and the manifest say: the message names it and says what to do. kUnavailable: the
/// store is away.
absl::StatusOr<std::vector<PartitionImage>> ReadChain(ObjectStore* store, PartitionId partition,
                                                      const Manifest& manifest);
/// The same in two steps: the first one waits for the store, the second one takes CPU time. `files`
/// are what FetchChain returned.
absl::StatusOr<std::vector<LocalFile>> FetchChain(ObjectStore* store, PartitionId partition,
                                                  const Manifest& manifest);
absl::StatusOr<std::vector<PartitionImage>> ReadChain(const ObjectStore& store,
                                                      PartitionId partition,
                                                      const Manifest& manifest,
                                                      const std::vector<LocalFile>& files);

}  // namespace muster::ps
