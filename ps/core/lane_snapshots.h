#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/work_limit.h"
#include "proto/messages/control.h"
#include "ps/core/lane_messages.h"
#include "ps/core/lane_state.h"
#include "ps/engine/partition.h"

namespace muster::ps {

/// An image that a background thread must write.
struct SnapshotJob {
  PartitionId partition;
  OwnerEpoch epoch;
  SnapshotNumber number;
  PartitionImage image;
};

/// Handles the snapshots of the lane's partitions, from the master's command to the master's
/// acceptance (docs/protocol.md section 3 items 4 and 5). A part of OwnedPartitions; only the
/// lane's thread uses it.
///
/// Each partition has at most one *outstanding* snapshot: its image is being copied or written, or
/// its report waits to be accepted. One more may be *wanted*. The lane copies one image at a time.
class LaneSnapshots {
 public:
  /// `lane` must outlive this object. After a failed write, nothing is written for `retry_pause`.
  LaneSnapshots(LaneState* lane, std::chrono::milliseconds retry_pause);

  /// The slot begins to serve a state that was built from `manifest`.
  void Begin(const Slot& slot, const Manifest& manifest);
  /// Drops the wanted snapshot and the outstanding snapshot of the slot's partition.
  void Drop(Slot* slot);

  void Accept(const AcceptedSnapshot& accepted);
  /// `sequence` is the exchange in which the command came.
  void Want(const SnapshotCommand& command, uint64_t sequence);

  /// See OwnedPartitions.
  bool BeginImage(TimePoint now);
  enum class Copy { kMore, kDone, kGone };
  Copy CopyImage(WorkLimit* work, SnapshotJob* job);
  bool TakeImageReady() { return std::exchange(image_ready_, false); }
  void Written(PartitionId partition, SnapshotNumber number, absl::StatusOr<SnapshotFile> file,
               TimePoint now);
  /// Call this when a partition no longer has half a part.
  void OnPartWhole();

  /// Adds the snapshots of a partition that is served to the report of the exchange `sequence`.
  /// From then on they count as reported.
  void Report(const Slot& slot, uint64_t sequence, LaneReport* report);
  /// Why the slot's newest write failed. Empty if it did not fail, or if the snapshot is no longer
  /// wanted.
  const std::string& ErrorOf(const Slot& slot) const { return partitions_[slot.index].error; }

 private:
  /// A snapshot whose image was begun, and which the master has not accepted yet.
  struct Outstanding {
    SnapshotNumber number;
    DoneSeq cut;
    bool with_file = false;  // false: nothing had changed
    SnapshotKind kind = SnapshotKind::kBase;
    bool written = false;
    Manifest chain;               // set when the file is written
    uint64_t first_reported = 0;  // the first exchange that reported it; 0: none yet
  };
  struct Standing {
    Manifest accepted;
    /// The master has accepted a snapshot that is not known here, so older files may be deleted.
    bool force_base = false;
    std::optional<SnapshotCommand> wanted;
    uint64_t place = 0;  // its key in wanted_, if a snapshot is wanted
    std::optional<Outstanding> outstanding;
    std::string error;
  };

  Standing& Of(const Slot& slot) { return partitions_[slot.index]; }
  static bool IsOutstanding(const Standing& of, SnapshotNumber number);
  void SetWanted(const Slot& slot, const SnapshotCommand& command);
  void ClearWanted(const Slot& slot);
  /// True if there is an image to copy.
  bool BeginSnapshot(Slot* slot, const SnapshotCommand& command);

  LaneState* const lane_;
  const std::chrono::milliseconds retry_pause_;
  std::vector<Standing> partitions_;  // by slot
  /// Partitions with a wanted snapshot, in the order in which they began to wait. Even if writing
  /// is too slow, each partition has its turn, because a shard is COMMITTED only when the snapshots
  /// of all partitions contain it.
  std::map<uint64_t, PartitionId> wanted_;
  uint64_t places_ = 0;  // how many were given so far
  TimePoint not_before_{};
  /// The image that is being copied, without its rows.
  std::optional<SnapshotJob> copying_;
  bool image_waits_ = false;  // an image waits until a part is complete
  bool image_ready_ = false;
};

}  // namespace muster::ps
