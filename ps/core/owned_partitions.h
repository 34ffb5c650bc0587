#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/planted_bug.h"
#include "base/work_limit.h"
#include "proto/messages/control.h"
#include "ps/core/request_progress.h"
#include "ps/core/requests.h"
#include "ps/engine/garbage.h"
#include "ps/engine/partition.h"
#include "ps/engine/push_ahead.h"
#include "ps/engine/row_gather.h"
#include "ps/snapshot/chain.h"

namespace muster::ps {

/// The master's commands for the partitions of one lane, out of one exchange.
struct LaneCommands {
  /// Of the lane's report that they answer.
  uint64_t sequence = 0;
  std::vector<OwnCommand> owns;
  std::vector<SnapshotCommand> snapshots;
  std::vector<AcceptedSnapshot> accepted;
  /// Null: nothing new.
  std::shared_ptr<const ForgetState> forget;
  /// The answer of another master than the one before: it knows nothing of what was only counted.
  bool new_master = false;
};

/// What one lane contributes to the next exchange.
struct LaneReport {
  /// Of the exchange that it was made for; it may be repeated in later ones.
  uint64_t sequence = 0;
  std::vector<OwnedPartition> owned;
  std::vector<SnapshotReport> snapshots;
  std::vector<MissingReport> missing;
  ServerCounters counters;
  std::vector<PartitionTraffic> traffic;
  /// Tables of which some partition has not the rows that they start from: give SetWarmStart.
  std::vector<TableId> warm_starts_wanted;
  /// Why a snapshot could not be written, or read, lately; empty: all is well.
  std::string snapshot_error, restore_error;
};

/// A partition to be built from its snapshot by a background thread.
struct LoadJob {
  uint64_t id = 0;
  PartitionId partition;
  Manifest manifest;
};

/// A table to be filled with the rows that it starts from (Table::Filled), by a background thread.
struct FillJob {
  uint64_t id = 0;
  PartitionId partition;
  TableSpec table;
  std::shared_ptr<const WarmStartSource> rows;
};

/// An image to be written by a background thread.
struct SnapshotJob {
  PartitionId partition;
  OwnerEpoch epoch;
  SnapshotNumber number;
  PartitionImage image;
};

/// The partitions of one lane and who may use them: docs/protocol.md section 5 for ownership (but
/// moves), section 3 items 4 and 5 for snapshots, and the first answers of section 2. Pure: time is
/// an argument, files are jobs whose results come back. Not thread-safe: owned by the lane's
/// thread.
///
/// No call's work grows with the rows of a partition or of a request: tables are loaded and filled
/// elsewhere, acceptance is O(1), requests and images are served in slices.
///
/// **A part in slices.** A part may be as large as a whole request, so slices end within parts,
/// too. The partition then holds half of it, and until it is whole no other push and no image gets
/// there: the push waits for its next slice, the image is looked for anew when the part is whole.
/// What does not look at the rows goes on: an OWN that keeps the state, acceptances, forgetting, a
/// new table; for them the part counts as applied from its first row on, and it is brought to its
/// end whatever becomes of its connection. An OWN that takes the state away takes the half part
/// with it. So nobody ever sees half a part but pulls, whose rows are promised one by one.
///
/// A table that is being filled is not in its
/// partition: parts for it answer kRetry, images do not list it. It gets there in one step, with
/// all rows, all dirty; so whatever comes before or after that step, a chain of images has all of
/// the table's rows or does not list the table. A fill whose partition was replaced meanwhile is
/// dropped.
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

  /// Makes a table known to all partitions, those to come included. When the spec names a warm
  /// start, partitions whose snapshot does not have the table wait for SetWarmStart and a fill;
  /// until then they answer kRetry for it. Report says that SetWarmStart is wanted.
  void AddTable(const TableSpec& table);
  /// The rows that a table added before starts from. Kept for partitions to come.
  void SetWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows);

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
  std::vector<FillJob> TakeFills();
  /// Dropped when the partition that it was for is gone.
  void Filled(const FillJob& job, std::unique_ptr<Table> table);

  /// The next image to write, copied now; none when nothing is wanted. Unchanged partitions are
  /// reported without one. Each is answered once, by Written. The caller limits how many are in
  /// memory.
  std::optional<SnapshotJob> NextSnapshot(TimePoint now);
  /// The same in slices: begins the next image, if one is wanted and none is being copied; true: it
  /// has, and CopyImage is to be called until it does not say kMore.
  bool BeginImage(TimePoint now);
  /// kGone: the image was of an epoch that is over. kDone: it is in `job`.
  enum class Copy { kMore, kDone, kGone };
  Copy CopyImage(WorkLimit* work, SnapshotJob* job);
  /// True, once, when an image that had to wait for a part may begin now.
  bool TakeImageReady() { return std::exchange(image_ready_, false); }
  void Written(PartitionId partition, SnapshotNumber number, absl::StatusOr<SnapshotFile> file,
               TimePoint now);

  /// What the exchange `sequence` shall say. Counts as said.
  LaneReport Report(uint64_t sequence);
  /// Of the exchange `sequence`, too: at most `limit` partitions in which something changed since
  /// the newest report that was answered; those left out come next.
  std::vector<PartitionTraffic> ReportTraffic(uint64_t sequence, size_t limit);
  /// True when something has to be reported that no report has had yet.
  bool HasNews() const { return news_; }

  /// One slice of a worker's request; see FrameHandler. `progress` is the request's own.
  Progress Pull(const PullRequest& request, const Slice& slice, PullReply* reply,
                RequestProgress* progress);
  Progress Push(const PushRequest& request, const Slice& slice, PushReply* reply,
                RequestProgress* progress);
  /// The whole request in one go. A push requires that no partition holds half a part.
  void Pull(const PullRequest& request, PullReply* reply);
  void Push(const PushRequest& request, PushReply* reply);
  /// What an answered request cost: its time is shared out to its partitions by rows.
  void CountServed(const ServedRequest& request, const RequestProgress& progress);
  /// The same of the newest one that was served in one go.
  void CountServed(const ServedRequest& request) { CountServed(request, whole_); }

  /// Hands out what takes long to free, for another thread to drop.
  Garbage TakeGarbage();

  /// For tests: the partition, or null when it is not being served.
  const Partition* Find(PartitionId partition) const;
  /// For tests: the owner epoch at which the partition is being served; 0: it is not.
  OwnerEpoch ServedEpoch(PartitionId partition) const;

 private:
  struct Load {
    uint64_t id = 0;
    Manifest manifest;
    bool started = false;
    TimePoint not_before{};
  };
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
  using Traffic = RequestProgress::Traffic;
  struct Slot {
    Traffic traffic;
    OwnerEpoch told;   // newest epoch of any command
    OwnerEpoch epoch;  // of what is served, or loaded
    std::unique_ptr<Partition> partition;
    uint64_t state = 0;  // which of all the states that were served here this one is
    std::optional<Load> load;
    std::map<TableId, uint64_t> fills;  // under way for this very partition: the ids of the jobs
    /// Why its newest load or write failed; empty: it did not, or nothing of it is wanted any more.
    std::string error;
    bool missing = false;
    Manifest accepted;
    /// The master has accepted a snapshot that is not known here: older files may go.
    bool force_base = false;
    std::optional<SnapshotCommand> wanted;
    std::optional<Outstanding> outstanding;
  };
  struct KnownTable {
    TableSpec spec;
    std::shared_ptr<const WarmStartSource> warm_start;  // null: none, or not loaded yet
    bool waits() const { return !spec.warm_start_directory.empty() && warm_start == nullptr; }
  };

  Slot* Find(uint32_t partition);
  PartitionId IdOf(const Slot& slot) const;
  /// The partition's state goes, and with it all that was under way for it.
  void Drop(Slot* slot);
  void DropSnapshots(Slot* slot);
  /// Whether the slot has, or is loading, a state of the epoch `from` or a newer one: what was
  /// pushed to it under the command's epoch is in no snapshot yet, so a repeat takes nothing away.
  static bool Keeps(const Slot& slot, const OwnCommand& command, OwnerEpoch from);
  void Own(const OwnCommand& command);
  void Serve(Slot* slot, std::unique_ptr<Partition> partition, const Manifest& manifest);
  /// Gives the table to the slot's partition, unless it has to be filled first.
  void GiveTable(const KnownTable& table, Slot* slot);
  std::vector<TableId> WarmStartsWanted() const;
  /// Whether the slot waits for the master's word on just this snapshot.
  static bool IsOutstanding(const Slot& slot, SnapshotNumber number);
  /// After the acceptance of a snapshot that is not known here: files of the chain that is known
  /// may go, so a delta would go on from what is not there.
  static bool NeedsBaseAfterUnknown();
  MUSTER_PLANTED_BODY(static bool LosesFileName(Slot* slot, SnapshotNumber accepted));
  void Accept(const AcceptedSnapshot& accepted);
  void WantSnapshot(const SnapshotCommand& command, uint64_t sequence);
  /// True when there is an image to be copied.
  bool BeginSnapshot(Slot* slot, const SnapshotCommand& command);
  /// What a worker's part meets before its partition: kOk when the partition serves that epoch.
  wire::PartCode Admit(uint32_t partition, uint64_t owner_epoch);
  /// Floats of a row, 0: the table is not known.
  uint32_t Width(uint32_t table) const;
  /// Counts a part of `keys` rows and `floats` values that was answered OK.
  void CountPart(Slot* slot, uint64_t Traffic::* kind, uint64_t keys, uint64_t floats,
                 RequestProgress* progress);
  void BeginPull(const PullRequest& request, PullReply* reply);
  void BeginPush(const PushRequest& request, PushReply* reply, RequestProgress* progress);
  /// The groups that the engine shall see together. A part that is refused has one without rows.
  void CollectGroups(const PullRequest& request, PullReply* reply, const RequestProgress& progress);
  /// False: a part's rows do not fit into the encoding; those behind it are as if not gathered.
  bool FinishGroups(const PullRequest& request, const Gathered& gathered, PullReply* reply,
                    RequestProgress* progress);
  void FinishPart(wire::PartCode code, const PullRequest& request, PullReply* reply,
                  RequestProgress* progress);
  /// One part, or as much of it as the slice allows: absent, then.
  void LookAhead(const PushRequest& request);  // see PushAhead
  std::optional<wire::PartReply> PushPart(const PushRequest& request, const Slice& slice,
                                          PushReply* reply, RequestProgress* progress);
  MUSTER_PLANTED_BODY(bool AppliesTablesAlone(Slot* slot));
  std::optional<ApplyResult> ApplyPart(Slot* slot, const PushRequest& request, WorkLimit* work,
                                       RequestProgress* progress);
  wire::PartReply AnswerOf(Slot* slot, const wire::PushPart& part, const ApplyResult& result,
                           std::string* text, RequestProgress* progress);

  const Options options_;
  std::vector<Slot> slots_;  // partition P at P / lane_count
  std::map<TableId, KnownTable> tables_;
  std::vector<uint32_t> widths_;  // by table id
  std::shared_ptr<const ForgetState> forget_;
  std::set<PartitionId> wanted_;  // slots with `wanted`
  TimePoint snapshots_not_before_{};
  uint64_t next_load_ = 1;
  ServerCounters counters_;
  std::vector<FillJob> fills_;  // to be taken
  uint64_t next_fill_ = 1;
  bool news_ = false;
  std::chrono::nanoseconds service_{0};
  size_t next_traffic_ = 0;  // slot with which the next report of traffic begins
  PushAhead push_ahead_;
  size_t ahead_part_ = 0, ahead_keys_ = 0;  // that it was told of, in the request served now
  Part part_;                               // reused between pushes
  RequestProgress whole_;                   // of requests in one go
  std::vector<PullGroup> pull_groups_;      // reused between pulls
  uint64_t states_ = 0;                     // that were served
  /// An image that is being copied, without its rows.
  std::optional<SnapshotJob> copying_;
  bool image_waits_ = false;  // for a part to be whole
  bool image_ready_ = false;
  Garbage garbage_;
};

}  // namespace muster::ps
