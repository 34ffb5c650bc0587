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

/// An image to be written by a background thread.
struct SnapshotJob {
  PartitionId partition;
  OwnerEpoch epoch;
  SnapshotNumber number;
  PartitionImage image;
};

/// The snapshots of the lane's partitions, from the master's command to its acceptance
/// (docs/protocol.md section 3 items 4 and 5). A part of OwnedPartitions, of the lane's thread.
///
/// Each partition has at most one *outstanding* snapshot: its image is being copied or written, or
/// its report waits to be accepted. One more may be *wanted*. The lane copies one image at a time.
class LaneSnapshots {
 public:
  /// `lane` outlives this. `retry_pause`: how long nothing is written after a failed write.
  LaneSnapshots(LaneState* lane, std::chrono::milliseconds retry_pause);

  /// The slot serves a state that was built from `manifest`.
  void Begin(const Slot& slot, const Manifest& manifest);
  /// Drops the wanted and the outstanding snapshot of the slot's partition.
  void Drop(Slot* slot);

  void Accept(const AcceptedSnapshot& accepted);
  /// `sequence`: of the exchange that the command came with.
  void Want(const SnapshotCommand& command, uint64_t sequence);

  /// See OwnedPartitions.
  bool BeginImage(TimePoint now);
  enum class Copy { kMore, kDone, kGone };
  Copy CopyImage(WorkLimit* work, SnapshotJob* job);
  bool TakeImageReady() { return std::exchange(image_ready_, false); }
  void Written(PartitionId partition, SnapshotNumber number, absl::StatusOr<SnapshotFile> file,
               TimePoint now);
  /// A partition no longer holds half a part.
  void OnPartWhole();

  /// The report of the exchange `sequence` about a partition that is served. It counts as reported.
  void Report(const Slot& slot, uint64_t sequence, LaneReport* report);
  /// Why the slot's newest write failed; empty if it did not fail, or is no longer wanted.
  const std::string& ErrorOf(const Slot& slot) const { return partitions_[slot.index].error; }

 private:
  /// A snapshot between its image and the master's acceptance.
  struct Outstanding {
    SnapshotNumber number;
    DoneSeq cut;
    bool with_file = false;  // otherwise, nothing had changed
    SnapshotKind kind = SnapshotKind::kBase;
    bool written = false;
    Manifest chain;               // when written
    uint64_t first_reported = 0;  // sequence of the first exchange that said so; 0: none yet
  };
  struct Standing {
    Manifest accepted;
    /// The master has accepted a snapshot that is not known here, so older files may be deleted.
    bool force_base = false;
    std::optional<SnapshotCommand> wanted;
    uint64_t place = 0;  // in wanted_, when one is wanted
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
  /// Partitions with a wanted snapshot, in the order in which they began to wait. If writing cannot
  /// keep up, each has its turn, because a shard is COMMITTED only when all partitions contain it.
  std::map<uint64_t, PartitionId> wanted_;
  uint64_t places_ = 0;  // given so far
  TimePoint not_before_{};
  /// An image that is being copied, without its rows.
  std::optional<SnapshotJob> copying_;
  bool image_waits_ = false;  // for a part to be complete
  bool image_ready_ = false;
};

}  // namespace muster::ps
