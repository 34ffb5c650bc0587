#include "ps/service/stored_snapshots.h"

#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "ps/export/export.h"
#include "ps/snapshot/snapshot.h"
#include "store/object_store.h"

namespace muster::ps {
namespace {

class StoredSnapshots final : public Storage {
 public:
  explicit StoredSnapshots(std::unique_ptr<ObjectStore> store) : store_(std::move(store)) {}

  absl::StatusOr<SnapshotFile> Write(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                                     const PartitionImage& image) override {
    return WriteSnapshot(store_.get(), partition, epoch, number, image);
  }

  absl::StatusOr<std::vector<PartitionImage>> Read(PartitionId partition,
                                                   const Manifest& manifest) override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<LocalFile> files,
                            FetchChain(store_.get(), partition, manifest));
    // Several partitions are fetched at once, but read one after the other: the lanes need the CPUs
    // for the partitions that they have.
    MutexLock lock(&reading_);
    return ReadChain(*store_, partition, manifest, files);
  }

  absl::StatusOr<std::shared_ptr<const WarmStartSource>> OpenWarmStart(
      const TableSpec& table, uint32_t partition_count) override {
    return LoadWarmStart(table, partition_count);
  }

 private:
  const std::unique_ptr<ObjectStore> store_;
  Mutex reading_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Storage>> OpenStorage(const std::string& snapshot_place) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, OpenStore(snapshot_place));
  return std::make_unique<StoredSnapshots>(std::move(store));
}

}  // namespace muster::ps
