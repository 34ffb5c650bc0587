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

/// The partitions of one lane: their ownership (docs/protocol.md section 5, without moves), and the
/// interface of the parts that know their tables, take their snapshots and serve their workers.
/// Pure: time is an argument, and files are jobs whose results come back. Not thread-safe: only the
/// lane's thread uses it.
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
    /// The pause before a failed load or snapshot is tried again.
    std::chrono::milliseconds retry_pause{1000};
    /// Bytes of the rows in one answer to a pull.
    uint64_t reply_bytes_max = wire::kValueBytesMax;
  };
  explicit OwnedPartitions(const Options& options);
  OwnedPartitions(const OwnedPartitions&) = delete;
  OwnedPartitions& operator=(const OwnedPartitions&) = delete;

  /// Adds a table to all partitions, also to later ones. If the spec names a warm start, partitions
  /// whose snapshot does not have the table wait for SetWarmStart and a fill. Until then they
  /// answer kRetry for it, and Report asks for SetWarmStart.
  void AddTable(const TableSpec& table) { tables_.Add(table); }
  /// Gives the rows from which a table starts that was added before. Kept for later partitions.
  void SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows) {
    tables_.SetWarmStart(table, std::move(rows));
  }

  /// Takes the commands of one exchange. Commands that are older than earlier ones, and repeats,
  /// change nothing. Commands for partitions of other lanes are dropped.
  void Apply(const LaneCommands& commands);

  /// Loads that should begin now. Each is answered once, by Loaded.
  std::vector<LoadJob> TakeLoads(TimePoint now);
  /// Takes the result of a load: the partition restored from its manifest (tables that came
  /// meanwhile
  /// are added here), or the error. Dropped if the ownership has changed.
  void Loaded(uint64_t load_id, absl::StatusOr<std::unique_ptr<Partition>> partition,
              TimePoint now);

  /// Tables that should be filled now. Each is answered once, by Filled.
  std::vector<FillJob> TakeFills() { return tables_.TakeFills(); }
  /// Dropped when the partition that it was for is gone.
  void Filled(const FillJob& job, std::unique_ptr<Table> table);

  /// Begins the next image, if one is wanted and none is being copied. True: it began one; call
  /// CopyImage until it does not return kMore. Unchanged partitions are reported without an image.
  /// The caller limits how many images are in memory.
  bool BeginImage(TimePoint now) { return snapshots_.BeginImage(now); }
  /// kGone: the image belonged to an epoch that is over. kDone: the image is in `job`; call Written
  /// once with its result.
  using Copy = LaneSnapshots::Copy;
  Copy CopyImage(WorkLimit* work, SnapshotJob* job) { return snapshots_.CopyImage(work, job); }
  /// True, once, when an image that had to wait for a part may begin now.
  bool TakeImageReady() { return snapshots_.TakeImageReady(); }
  void Written(PartitionId partition, SnapshotNumber number, absl::StatusOr<SnapshotFile> file,
               TimePoint now) {
    snapshots_.Written(partition, number, std::move(file), now);
  }

  /// The report for the exchange `sequence`. Counts as reported.
  LaneReport Report(uint64_t sequence);
  /// Also for the exchange `sequence`: at most `limit` partitions that changed since the newest
  /// answered report. The others come next.
  std::vector<PartitionTraffic> ReportTraffic(uint64_t sequence, size_t limit) {
    return traffic_.Report(sequence, limit);
  }
  /// True if there is news that no report contains yet.
  bool HasNews() const { return lane_.news; }

  /// One slice of a worker's request; see FrameHandler. `progress` is the request's own.
  Progress Pull(const PullRequest& request, const Slice& slice, PullReply* reply,
                RequestProgress* progress) {
    return pulls_.Serve(request, slice, reply, progress);
  }
  Progress Push(const PushRequest& request, const Slice& slice, PushReply* reply,
                RequestProgress* progress);
  /// Takes the cost of an answered request. Its time is divided among its partitions by rows.
  void CountServed(const ServedRequest& request, const RequestProgress& progress) {
    traffic_.CountServed(request, progress);
  }

  /// Hands out what takes long to free, for another thread to drop.
  Garbage TakeGarbage();

  /// The state of a partition of this lane, for tests and the oracle of tests/sim. Null if the
  /// partition belongs to another lane.
  const Slot* Look(PartitionId partition) const {
    return const_cast<LaneState&>(lane_).Find(partition);
  }

 private:
  /// What the master has said of a partition.
  struct Told {
    OwnerEpoch epoch;      // newest of any command
    bool missing = false;  // its state is nowhere to be had
  };

  /// True if the slot has, or is loading, a state of the epoch `from` or a newer one. What was
  /// pushed to it under the command's epoch is in no snapshot yet, so a repeated command keeps it.
  static bool Keeps(const Slot& slot, OwnerEpoch from);
  void Own(const OwnCommand& command);
  /// Drops the partition's state, and everything that was in progress for it.
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
