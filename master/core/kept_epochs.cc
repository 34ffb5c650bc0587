#include "master/core/kept_epochs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace muster {

KeptEpochs::KeptEpochs(const Records& kept, uint32_t partitions) {
  for (const auto& [epoch, manifests] : kept) {
    std::vector<Manifest>& by_partition = epochs_[epoch];
    by_partition.resize(partitions);
    for (const auto& [partition, manifest] : manifests) {
      MUSTER_CHECK(partition.value() < partitions);
      by_partition[partition.value()] = manifest;
      for (const SnapshotFile& file : manifest.files) ++uses_[file.name];
    }
  }
}

void KeptEpochs::Keep(EpochIndex epoch, const PartitionTable& partitions) {
  MUSTER_CHECK(!epochs_.contains(epoch));
  std::vector<Manifest>& by_partition = epochs_[epoch];
  for (uint32_t p = 0; p < partitions.size(); ++p) {
    const Manifest& manifest = partitions.manifest(PartitionId(p));
    by_partition.push_back(manifest);
    for (const SnapshotFile& file : manifest.files) ++uses_[file.name];
    pending_.push_back(KeptRecord{epoch, PartitionId(p), manifest});
  }
}

void KeptEpochs::Drop(EpochIndex epoch, const PartitionTable& partitions,
                      std::vector<std::string>* unused) {
  const auto kept = epochs_.find(epoch);
  MUSTER_CHECK(kept != epochs_.end());
  for (uint32_t p = 0; p < kept->second.size(); ++p) {
    const std::vector<SnapshotFile>& counts = partitions.manifest(PartitionId(p)).files;
    for (const SnapshotFile& file : kept->second[p].files) {
      const auto uses = uses_.find(file.name);
      MUSTER_CHECK_MSG(uses != uses_.end(), file.name);
      if (--uses->second > 0) continue;
      uses_.erase(uses);
      const bool in_use = std::ranges::any_of(
          counts, [&](const SnapshotFile& one) { return one.name == file.name; });
      if (!in_use) unused->push_back(file.name);
    }
  }
  epochs_.erase(kept);
  pending_.push_back(EraseKept{epoch});
}

void KeptEpochs::Collect(std::vector<Mutation>* mutations) {
  std::ranges::move(pending_, std::back_inserter(*mutations));
  pending_.clear();
}

}  // namespace muster
