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

/// A job for a background thread: to build a partition from its snapshot.
struct LoadJob {
  uint64_t id = 0;
  PartitionId partition;
  Manifest manifest;
};

/// The partitions of one lane. It handles their ownership (docs/protocol.md section 5, without
/// moves). It is also the interface of the parts that know the tables, take the snapshots and serve
/// the workers. Pure: time is an argument, and work on files is a job whose result comes back. Not
/// thread-safe: only the lane's thread uses it.
///
/// The work of a call never grows with the rows of a partition or of a request. Tables are loaded
/// and filled on other threads, an acceptance is O(1), and requests and images are served in
/// slices.
class OwnedPartitions {
 public:
  struct Options {
    uint64_t job_seed = 0;
    uint32_t partition_count = 0;
    uint32_t lane = 0;
    uint32_t lane_count = 1;
    /// The pause before a failed load or snapshot is tried again.
    std::chrono::milliseconds retry_pause{1000};
    /// The most bytes of rows in one answer to a pull.
    uint64_t reply_bytes_max = wire::kValueBytesMax;
  };
  explicit OwnedPartitions(const Options& options);
  OwnedPartitions(const OwnedPartitions&) = delete;
  OwnedPartitions& operator=(const OwnedPartitions&) = delete;

  /// Adds a table to all partitions, also to those that come later. If the spec names a warm start,
  /// partitions whose snapshot does not have the table wait for SetWarmStart and for a fill. Until
  /// then they answer kRetry for this table, and Report asks for SetWarmStart.
  void AddTable(const TableSpec& table) { tables_.Add(table); }
  /// Sets the rows from which a table starts. AddTable must come first. The rows are kept for
  /// partitions that come later.
  void SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows) {
    tables_.SetWarmStart(table, std::move(rows));
  }

  /// Takes the commands of one exchange. Repeated commands, and commands that are older than
  /// earlier ones, change nothing. Commands for partitions of other lanes are dropped.
  void Apply(const LaneCommands& commands);

  /// Returns the loads that should begin now. Answer each of them once, with Loaded.
  std::vector<LoadJob> TakeLoads(TimePoint now);
  /// Takes the result of a load: the partition that was restored from its manifest, or the error.
  /// Tables that came meanwhile are added here. The result is dropped if the ownership has changed.
  void Loaded(uint64_t load_id, absl::StatusOr<std::unique_ptr<Partition>> partition,
              TimePoint now);

  /// Returns the tables that should be filled now. Answer each of them once, with Filled.
  std::vector<FillJob> TakeFills() { return tables_.TakeFills(); }
  /// Takes a filled table. It is dropped if its partition is gone.
  void Filled(const FillJob& job, std::unique_ptr<Table> table);

  /// Begins the next image if one is wanted and none is being copied. Returns true if it began one:
  /// then call CopyImage until it does not return kMore. Unchanged partitions are reported without
  /// an image. The caller limits how many images are in memory.
  bool BeginImage(TimePoint now) { return snapshots_.BeginImage(now); }
  /// kGone: the image belonged to an epoch that is over. kDone: the image is in `job`; call Written
  /// once, with the result of the write.
  using Copy = LaneSnapshots::Copy;
  Copy CopyImage(WorkLimit* work, SnapshotJob* job) { return snapshots_.CopyImage(work, job); }
  /// Returns true, once, when an image had to wait for a part and may begin now.
  bool TakeImageReady() { return snapshots_.TakeImageReady(); }
  void Written(PartitionId partition, SnapshotNumber number, absl::StatusOr<SnapshotFile> file,
               TimePoint now) {
    snapshots_.Written(partition, number, std::move(file), now);
  }

  /// Returns the report for the exchange `sequence`. From then on, its contents count as reported.
  LaneReport Report(uint64_t sequence);
  /// Returns the traffic for the exchange `sequence`: at most `limit` partitions that have changed
  /// since the newest report with an answer. The next reports have the others.
  std::vector<PartitionTraffic> ReportTraffic(uint64_t sequence, size_t limit) {
    return traffic_.Report(sequence, limit);
  }
  /// True if there is news that no report contains yet.
  bool HasNews() const { return lane_.news; }

  /// Serves one slice of a worker's request; see FrameHandler. Each request has its own `progress`.
  Progress Pull(const PullRequest& request, const Slice& slice, PullReply* reply,
                RequestProgress* progress) {
    return pulls_.Serve(request, slice, reply, progress);
  }
  Progress Push(const PushRequest& request, const Slice& slice, PushReply* reply,
                RequestProgress* progress);
  /// Counts the cost of an answered request. Its time is divided among its partitions in proportion
  /// to their rows.
  void CountServed(const ServedRequest& request, const RequestProgress& progress) {
    traffic_.CountServed(request, progress);
  }

  /// Returns memory that takes long to free. Another thread should free it.
  Garbage TakeGarbage();

  /// Shows the state of a partition to tests and to the oracle of tests/sim. Null if the partition
  /// belongs to another lane.
  const Slot* Look(PartitionId partition) const {
    return const_cast<LaneState&>(lane_).Find(partition);
  }

 private:
  /// What the master has said about a partition.
  struct Told {
    OwnerEpoch epoch;      // the newest epoch of any command
    bool missing = false;  // no place has its state
  };

  /// True if the slot has, or loads, a state of the epoch `from` or of a newer one. A repeated
  /// command must keep this state, because the pushes under the command's epoch are in no snapshot
  /// yet.
  static bool Keeps(const Slot& slot, OwnerEpoch from);
  void Own(const OwnCommand& command);
  /// Drops the partition's state, and all work in progress for it.
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
  uint64_t states_ = 0;  // how many states the lane has served
};

}  // namespace muster::ps
