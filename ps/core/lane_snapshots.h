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
#include "base/planted_bug.h"
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
/// Of each partition one snapshot at most is *outstanding*: its image is being copied or written,
/// or its report waits for the acceptance. One more may be *wanted*. One image at a time is being
/// copied on the lane.
class LaneSnapshots {
 public:
  /// `lane` outlives this. `retry_pause`: how long all writing rests after a write that failed.
  LaneSnapshots(LaneState* lane, std::chrono::milliseconds retry_pause);

  /// The slot serves a state that was built from `manifest`.
  void Begin(const Slot& slot, const Manifest& manifest);
  /// What is wanted or outstanding of the slot's partition is so no more.
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
  /// Some partition holds no half part any more.
  void OnPartWhole();

  /// What the exchange `sequence` shall say of a partition that is served. Counts as said.
  void Report(const Slot& slot, uint64_t sequence, LaneReport* report);
  /// Why the slot's newest write failed; empty: it did not, or nothing of it is wanted any more.
  const std::string& ErrorOf(const Slot& slot) const { return partitions_[slot.index].error; }

 private:
  /// A snapshot between its image and the master's acceptance.
  struct Outstanding {
    SnapshotNumber number;
    DoneSeq cut;
    bool with_file = false;  // else nothing had changed
    SnapshotKind kind = SnapshotKind::kBase;
    bool written = false;
    Manifest chain;               // when written
    uint64_t first_reported = 0;  // sequence of the first exchange that said so; 0: none yet
  };
  struct Standing {
    Manifest accepted;
    /// The master has accepted a snapshot that is not known here: older files may go.
    bool force_base = false;
    std::optional<SnapshotCommand> wanted;
    uint64_t place = 0;  // in wanted_, when one is wanted
    std::optional<Outstanding> outstanding;
    std::string error;
  };
  /// What became of an image.
  enum class Fate { kWritten, kFailed, kAccepted };

  Standing& Of(const Slot& slot) { return partitions_[slot.index]; }
  static bool IsOutstanding(const Standing& of, SnapshotNumber number);
  static bool NeedsBaseAfterUnknown();
  static bool MakesRowsClean(Fate fate);
  MUSTER_PLANTED_BODY(static bool LosesFileName(Slot* slot, Standing* of, SnapshotNumber accepted));
  static void OnFate(Fate fate, const Outstanding& outstanding, Slot* slot);
  void SetWanted(const Slot& slot, const SnapshotCommand& command);
  void ClearWanted(const Slot& slot);
  /// True when there is an image to be copied.
  bool BeginSnapshot(Slot* slot, const SnapshotCommand& command);

  LaneState* const lane_;
  const std::chrono::milliseconds retry_pause_;
  std::vector<Standing> partitions_;  // by slot
  /// Of which one is wanted, in the order in which they began to wait. When writing cannot keep up,
  /// each has its turn: what all partitions hold is COMMITTED, and no more.
  std::map<uint64_t, PartitionId> wanted_;
  uint64_t places_ = 0;  // given so far
  TimePoint not_before_{};
  /// An image that is being copied, without its rows.
  std::optional<SnapshotJob> copying_;
  bool image_waits_ = false;  // for a part to be whole
  bool image_ready_ = false;
};

}  // namespace muster::ps
