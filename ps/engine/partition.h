#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/words/types.h"
#include "base/work_limit.h"
#include "proto/messages/control.h"
#include "ps/engine/garbage.h"
#include "ps/engine/table.h"
#include "ps/engine/warm_start.h"
#include "ps/engine/window.h"

namespace muster::ps {

/// Rows of one table in a part: `gradients: [keys.size(), dim] float32 row-major`. The sender makes
/// keys unique by summing gradients. This is not checked, because it would cost as much as finding
/// the rows. A key that comes twice takes two optimizer steps, which only changes the formula.
struct PartGroup {
  TableId table;
  std::span<const uint64_t> keys;
  std::span<const float> gradients;
};
/// Without groups it asks a question: are the minibatch's gradients already in the rows?
struct Part {
  ShardId shard;
  MinibatchIndex minibatch;
  LeaseToken token;
  uint64_t step = 0;
  std::vector<PartGroup> groups;
};

enum class ApplyCode : uint8_t {
  kApplied,
  kSkipped,
  kStaleLease,
  kUnknownTable,
  kBadRequest,
  kMissing,  // the answer to a question; kSkipped is the other one
};
struct ApplyResult {
  ApplyCode code = ApplyCode::kApplied;
  std::string text;  // kBadRequest: what was wrong
};

/// The progress of a part that is applied in slices. A new object begins the part.
struct PartProgress {
  enum class Stage : uint8_t {
    kNew,
    kChecking,  // nothing of it has happened yet
    kApplying,  // the partition holds half of it
  };
  Stage stage = Stage::kNew;
  size_t group = 0;  // groups before this one are checked, or applied,
  size_t row = 0;    // and of this one the rows before this one
};

/// A snapshot is one base (every row) and a chain of deltas (the rows changed since the one
/// before).
enum class SnapshotKind : uint8_t { kBase, kDelta };

/// The contents of a snapshot, copied at one instant; snapshot/ writes it. It has only row images
/// with at least one row, by table; tables by id.
struct PartitionImage {
  SnapshotKind kind = SnapshotKind::kDelta;
  std::vector<TableSpec> tables;
  std::vector<RowImage> rows;
  std::vector<WindowEntry> window;  // sorted by shard
  LeaseToken floor;
};

/// One partition's whole state: rows with optimizer slots, window, floor. Pure: no thread, socket,
/// file or clock; not thread-safe, owned by one lane thread. Ownership (epochs) is checked by
/// OwnedPartitions before a call gets here.
class Partition {
 public:
  Partition(PartitionId id, uint64_t job_seed);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  PartitionId id() const;

  /// Makes a table known; a repeat changes nothing (the master has refused conflicting ones). A new
  /// table starts with the rows that `warm_start` has for this partition; `warm_start` may be null
  /// only when the spec names no warm start, or the table is known.
  void AddTable(const TableSpec& table, const WarmStartSource* warm_start = nullptr);
  /// The same for a table that was filled elsewhere (Table::Filled); O(1). From this call on it is
  /// in images, with all its rows. Requires that the table is not known.
  void AdoptTable(std::unique_ptr<Table> table);
  bool KnowsTable(TableId table) const;

  /// Applies the rules of docs/protocol.md section 2 after ownership: it checks the floor and the
  /// window; otherwise it applies the part and adds it to the window, in one step that cannot be
  /// half done. All reasons to refuse (table, width, key range, non-finite values) are checked
  /// before the first row changes. If a peer changes values meanwhile (docs/wire.md), they are
  /// applied as they are. kUnknownTable means that nothing was applied.
  ///
  /// A part whose step makes a row NaN or infinite is applied, but its answer is kBadRequest with
  /// table and key, and so is the answer to every later part and question, after a restore, too. So
  /// its shard fails, and so does every shard that pushes to this partition.
  ///
  /// In slices: an absent result means that the work limit is spent; call it again with the same
  /// part. From its first changed row to its last, the partition has half of the part; its
  /// minibatch is in the window from the first row on. Until the part is complete, only pulls may
  /// see the partition's rows, and the caller must complete the part, unless it drops the
  /// partition.
  std::optional<ApplyResult> Apply(const Part& part, PartProgress* progress, WorkLimit* work);
  /// In one go.
  ApplyResult Apply(const Part& part);
  /// True while a part is half applied. Then no image may begin: it must not contain half a part,
  /// whose minibatch is in the window.
  bool holds_half() const;

  /// Copies rows into `values: [keys.size(), dim] float32 row-major`; an absent row gets its
  /// initial value and is not created. kNotFound: unknown table; kInvalidArgument: sizes or key
  /// range.
  absl::Status Pull(TableId table, std::span<const uint64_t> keys, std::span<float> values) const;
  /// The table, for Gather: many groups, of many partitions, in slices. Between two slices, rows
  /// may
  /// change, for example by pushes. Null if the table is not known. Valid until the partition is
  /// restored or dropped.
  const Table* FindTable(TableId table) const;
  /// Prefetches the data of the window that a part of this shard will need.
  void PrefetchWindow(const ShardId& shard) const;

  /// docs/protocol.md section 3 item 7; takes the floor over in the same step.
  void Forget(const ForgetState& state);

  /// Begins an image of this instant, the cut. Its rows stay dirty until Accepted(number).
  /// CopyImage
  /// continues it, slice by slice. Later changes are not in it: a row that changes before it was
  /// copied is copied first. Requires that no part is half applied and no image is being copied.
  void BeginImage(SnapshotNumber number, SnapshotKind kind);
  /// True: the image is whole, and TakeImage has it.
  bool CopyImage(WorkLimit* work);
  PartitionImage TakeImage();
  /// Ends the image that is being copied, if there is one.
  void DropImage();
  /// An image at this instant, in one go.
  PartitionImage Snapshot(SnapshotNumber number, SnapshotKind kind);
  /// The snapshot is in the manifest, so its rows are no longer dirty (unless they changed since).
  /// Only the newest snapshot can be accepted, and only once. For any other, nothing changes, its
  /// rows come again, and the result is false. O(tables), however many rows it has.
  bool Accepted(SnapshotNumber number);
  /// True if the accepted snapshot (or an empty partition, if none was ever accepted) also
  /// describes
  /// the state at this instant: no row, table or window entry was added or changed since.
  /// Forgetting and the floor do not count: the older window still lists every minibatch of a shard
  /// forgotten since, so it skips everything that the newer floor would refuse.
  bool UnchangedSinceAccepted() const;

  /// Builds the state from images, base first (none: empty); everything in them counts as accepted
  /// under `number`. kDataLoss says which image contradicts itself or the others; the partition is
  /// then as it was.
  absl::Status Restore(SnapshotNumber number, std::span<const PartitionImage> images);

  /// Hands out what takes long to free.
  void TakeGarbage(Garbage* garbage);

  struct Sizes {
    uint64_t rows = 0;
    uint64_t row_bytes = 0;
    uint64_t dirty_rows = 0;
    uint64_t window_shards = 0;
  };
  Sizes sizes() const;
  LeaseToken floor() const;
  /// True when the minibatch's part is in the rows.
  bool InWindow(const ShardId& shard, MinibatchIndex minibatch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::ps
