#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "ps/engine/partition.h"

namespace muster::ps {

/// Where snapshots and warm starts are: blocking calls, made by background threads only.
/// Thread-safe. Errors name the file and what to do.
class Storage {
 public:
  virtual ~Storage() = default;
  /// Publishes the image under a name that no other owner epoch or snapshot can have. An error
  /// leaves nothing behind.
  virtual absl::StatusOr<SnapshotFile> Write(PartitionId partition, OwnerEpoch epoch,
                                             SnapshotNumber number,
                                             const PartitionImage& image) = 0;
  /// The images of a chain, base first, checked.
  virtual absl::StatusOr<std::vector<PartitionImage>> Read(PartitionId partition,
                                                           const Manifest& manifest) = 0;
  /// The rows that a table with a warm start begins with. The source may be shared and kept.
  virtual absl::StatusOr<std::shared_ptr<const WarmStartSource>> OpenWarmStart(
      const TableSpec& table, uint32_t partition_count) = 0;
};

}  // namespace muster::ps
