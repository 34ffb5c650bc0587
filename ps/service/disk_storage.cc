#include "ps/service/disk_storage.h"

#include <utility>

#include "ps/export/export.h"
#include "ps/snapshot/snapshot.h"

namespace muster::ps {
namespace {

class DiskStorage final : public Storage {
 public:
  explicit DiskStorage(std::string directory) : directory_(std::move(directory)) {}

  absl::StatusOr<SnapshotFile> Write(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                                     const PartitionImage& image) override {
    return WriteSnapshot(directory_, partition, epoch, number, image);
  }

  absl::StatusOr<std::vector<PartitionImage>> Read(PartitionId partition,
                                                   const Manifest& manifest) override {
    return ReadChain(directory_, partition, manifest);
  }

  absl::StatusOr<std::shared_ptr<const WarmStartSource>> OpenWarmStart(
      const TableSpec& table, uint32_t partition_count) override {
    return LoadWarmStart(table, partition_count);
  }

 private:
  const std::string directory_;
};

}  // namespace

std::unique_ptr<Storage> MakeDiskStorage(const std::string& snapshot_directory) {
  return std::make_unique<DiskStorage>(snapshot_directory);
}

}  // namespace muster::ps
