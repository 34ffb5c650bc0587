#pragma once

#include <optional>

#include "base/check.h"
#include "base/work_limit.h"
#include "ps/core/owned_partitions.h"

namespace muster::ps {

/// Serves in one go what a lane serves in slices, for tests that are not about slices.

/// Returns what CountServed wants.
inline RequestProgress PullWhole(const PullRequest& request, OwnedPartitions* owned,
                                 PullReply* reply) {
  WorkLimit work = WorkLimit::None();
  RequestProgress progress;
  MUSTER_CHECK(owned->Pull(request, {.work = &work}, reply, &progress) == Progress::kDone);
  return progress;
}

/// The same of a push. Requires that no partition holds half a part.
inline RequestProgress PushWhole(const PushRequest& request, OwnedPartitions* owned,
                                 PushReply* reply) {
  WorkLimit work = WorkLimit::None();
  RequestProgress progress;
  MUSTER_CHECK(owned->Push(request, {.work = &work}, reply, &progress) == Progress::kDone);
  return progress;
}

/// The next image to write, copied now; none when nothing is wanted.
inline std::optional<SnapshotJob> NextSnapshot(OwnedPartitions* owned, TimePoint now) {
  if (!owned->BeginImage(now)) return std::nullopt;
  WorkLimit work = WorkLimit::None();
  SnapshotJob job;
  while (owned->CopyImage(&work, &job) == OwnedPartitions::Copy::kMore) {
  }
  return job;
}

/// The partition, or null when it is not being served.
inline const Partition* Served(const OwnedPartitions& owned, PartitionId partition) {
  const Slot* const slot = owned.Look(partition);
  return slot == nullptr ? nullptr : slot->partition.get();
}

}  // namespace muster::ps
