#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/work_limit.h"
#include "proto/messages/control.h"
#include "ps/core/lane_messages.h"
#include "ps/core/lane_snapshots.h"
#include "ps/core/lane_state.h"
#include "ps/core/lane_tables.h"
#include "ps/core/lane_traffic.h"
#include "ps/core/pulls.h"
#include "ps/core/pushes.h"
#include "ps/core/request_progress.h"
#include "ps/core/requests.h"
#include "ps/engine/garbage.h"
#include "ps/engine/partition.h"

namespace muster::ps {

/// A partition to be built from its snapshot by a background thread.
struct LoadJob {
  uint64_t id = 0;
  PartitionId partition;
  Manifest manifest;
};

/// The partitions of one lane: who owns them (docs/protocol.md section 5, but moves), and the face
/// of the parts that know their tables, take their snapshots and serve their workers. Pure: time is
/// an argument, files are jobs whose results come back. Not thread-safe: owned by the lane's
/// thread.
///
/// No call's work grows with the rows of a partition or of a request: tables are loaded and filled
/// elsewhere, acceptance is O(1), requests and images are served in slices.
class OwnedPartitions {
 public:
  struct Options {
    uint64_t job_seed = 0;
    uint32_t partition_count = 0;
    uint32_t lane = 0;
    uint32_t lane_count = 1;
    /// How long a failed load or snapshot rests before it is tried again.
    std::chrono::milliseconds retry_pause{1000};
    /// Bytes of the rows in one answer to a pull.
    uint64_t reply_bytes_max = wire::kValueBytesMax;
  };
  explicit OwnedPartitions(const Options& options);
  OwnedPartitions(const OwnedPartitions&) = delete;
  OwnedPartitions& operator=(const OwnedPartitions&) = delete;

  /// Makes a table known to all partitions, those to come included. When the spec names a warm
  /// start, partitions whose snapshot does not have the table wait for SetWarmStart and a fill;
  /// until then they answer kRetry for it. Report says that SetWarmStart is wanted.
  void AddTable(const TableSpec& table) { tables_.Add(table); }
  /// The rows that a table added before starts from. Kept for partitions to come.
  void SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows) {
    tables_.SetWarmStart(table, std::move(rows));
  }

  /// Takes over the commands of one exchange. Older ones than those told before change nothing, nor
  /// do repeats. Commands for partitions of other lanes are dropped.
  void Apply(const LaneCommands& commands);

  /// Loads that should begin now. Each is answered once, by Loaded.
  std::vector<LoadJob> TakeLoads(TimePoint now);
  /// The partition of a load, restored from its manifest (tables that came meanwhile are added
  /// here), or why it could not be. Dropped when the ownership has moved on.
  void Loaded(uint64_t load_id, absl::StatusOr<std::unique_ptr<Partition>> partition,
              TimePoint now);

  /// Tables that should be filled now. Each is answered once, by Filled.
  std::vector<FillJob> TakeFills() { return tables_.TakeFills(); }
  /// Dropped when the partition that it was for is gone.
  void Filled(const FillJob& job, std::unique_ptr<Table> table);

  /// Begins the next image, if one is wanted and none is being copied; true: it has, and CopyImage
  /// is to be called until it does not say kMore. Unchanged partitions are reported without an
  /// image. The caller limits how many images are in memory.
  bool BeginImage(TimePoint now) { return snapshots_.BeginImage(now); }
  /// kGone: the image was of an epoch that is over. kDone: it is in `job`, and is answered once, by
  /// Written.
  using Copy = LaneSnapshots::Copy;
  Copy CopyImage(WorkLimit* work, SnapshotJob* job) { return snapshots_.CopyImage(work, job); }
  /// True, once, when an image that had to wait for a part may begin now.
  bool TakeImageReady() { return snapshots_.TakeImageReady(); }
  void Written(PartitionId partition, SnapshotNumber number, absl::StatusOr<SnapshotFile> file,
               TimePoint now) {
    snapshots_.Written(partition, number, std::move(file), now);
  }

  /// What the exchange `sequence` shall say. Counts as said.
  LaneReport Report(uint64_t sequence);
  /// Of the exchange `sequence`, too: at most `limit` partitions in which something changed since
  /// the newest report that was answered; those left out come next.
  std::vector<PartitionTraffic> ReportTraffic(uint64_t sequence, size_t limit) {
    return traffic_.Report(sequence, limit);
  }
  /// True when something has to be reported that no report has had yet.
  bool HasNews() const { return lane_.news; }

  /// One slice of a worker's request; see FrameHandler. `progress` is the request's own.
  Progress Pull(const PullRequest& request, const Slice& slice, PullReply* reply,
                RequestProgress* progress) {
    return pulls_.Serve(request, slice, reply, progress);
  }
  Progress Push(const PushRequest& request, const Slice& slice, PushReply* reply,
                RequestProgress* progress);
  /// What an answered request cost: its time is shared out to its partitions by rows.
  void CountServed(const ServedRequest& request, const RequestProgress& progress) {
    traffic_.CountServed(request, progress);
  }

  /// Hands out what takes long to free, for another thread to drop.
  Garbage TakeGarbage();

  /// How a partition of this lane stands, for who looks on: tests, and the oracle of tests/sim.
  /// Null: it is another lane's.
  const Slot* Look(PartitionId partition) const {
    return const_cast<LaneState&>(lane_).Find(partition);
  }

 private:
  /// What the master has said of a partition.
  struct Told {
    OwnerEpoch epoch;      // newest of any command
    bool missing = false;  // its state is nowhere to be had
  };

  /// Whether the slot has, or is loading, a state of the epoch `from` or a newer one: what was
  /// pushed to it under the command's epoch is in no snapshot yet, so a repeat takes nothing away.
  static bool Keeps(const Slot& slot, const OwnCommand& command, OwnerEpoch from);
  void Own(const OwnCommand& command);
  /// The partition's state goes, and with it all that was under way for it.
  void Drop(Slot* slot);
  void Serve(Slot* slot, std::unique_ptr<Partition> partition, const Manifest& manifest);

  const Options options_;
  LaneState lane_;
  LaneTables tables_;
  LaneTraffic traffic_;
  LaneSnapshots snapshots_;
  Pulls pulls_;
  Pushes pushes_;
  std::vector<Told> told_;  // by slot
  std::shared_ptr<const ForgetState> forget_;
  uint64_t next_load_ = 1;
  uint64_t states_ = 0;  // that were served
};

}  // namespace muster::ps
