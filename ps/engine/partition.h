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
#include "ps/engine/push_ahead.h"
#include "ps/engine/table.h"
#include "ps/engine/warm_start.h"
#include "ps/engine/window.h"

namespace muster::ps {

/// The rows of one table in a part: `gradients: [keys.size(), dim] float32 row-major`. The sender
/// makes the keys unique: it sums the gradients of equal keys. This is not checked, because a check
/// would cost as much as finding the rows. A key that comes twice takes two optimizer steps, which
/// only changes the formula.
struct PartGroup {
  TableId table;
  std::span<const uint64_t> keys;
  std::span<const float> gradients;
};
/// A part without groups asks a question: are the minibatch's gradients already in the rows?
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
  kMissing,  // the answer "no" to a question; kSkipped is the answer "yes"
};
struct ApplyResult {
  ApplyCode code = ApplyCode::kApplied;
  std::string text;  // for kBadRequest: what was wrong
};

/// The progress of a part that is applied in slices. A part begins with a new object.
struct PartProgress {
  enum class Stage : uint8_t {
    kNew,
    kChecking,  // no row has changed yet
    kApplying,  // the partition has half of the part
  };
  Stage stage = Stage::kNew;
  size_t group = 0;  // the groups before this one are checked, or applied
  size_t row = 0;    // in this group, the rows before this one are
};

/// A snapshot is one base, which has every row, and a chain of deltas. A delta has the rows that
/// changed since the file before it.
enum class SnapshotKind : uint8_t { kBase, kDelta };

/// The contents of a snapshot, copied at one instant; snapshot/ writes it. The row images are
/// sorted by table, and each has at least one row. The tables are sorted by id.
struct PartitionImage {
  SnapshotKind kind = SnapshotKind::kDelta;
  std::vector<TableSpec> tables;
  std::vector<RowImage> rows;
  std::vector<WindowEntry> window;  // sorted by shard
  LeaseToken floor;
};

/// One partition's whole state: rows with optimizer slots, window, floor. Pure: it has no thread,
/// socket, file or clock. Not thread-safe: one lane thread owns it. OwnedPartitions checks the
/// ownership (epochs) before it calls the partition.
class Partition {
 public:
  Partition(PartitionId id, uint64_t job_seed);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  PartitionId id() const;

  /// Makes a table known. A repeat changes nothing (the master has refused conflicting ones). A new
  /// table starts with the rows that `warm_start` has for this partition. `warm_start` may be null
  /// only if the spec names no warm start, or if the table is known.
  void AddTable(const TableSpec& table, const WarmStartSource* warm_start = nullptr);
  /// As AddTable, for a table that was filled elsewhere (Table::Filled); O(1). From this call on,
  /// images have the table with all its rows. Requires that the table is not known.
  void AdoptTable(std::unique_ptr<Table> table);
  bool KnowsTable(TableId table) const;

  /// Applies the rules of docs/protocol.md section 2 that follow the check of ownership. It checks
  /// the floor and the window. If they allow it, it applies the part and adds it to the window, in
  /// one step that cannot stay half done. All reasons to refuse (table, width, key range,
  /// non-finite values) are checked before the first row changes. If a peer changes values
  /// meanwhile (docs/wire.md), they are applied as they are. kUnknownTable means that nothing was
  /// applied.
  ///
  /// A part whose step makes a row NaN or infinite is applied, but its answer is kBadRequest with
  /// table and key. Every later part and question gets the same answer, also after a restore. So
  /// the shard of the part fails, and so does every shard that pushes to this partition.
  ///
  /// In slices: an absent result means that the work limit is spent. Then call it again with the
  /// same part. From its first changed row to its last, the partition has half of the part. The
  /// window has its minibatch from the first row on. Until the part is complete, only pulls may see
  /// the partition's rows. The caller must complete the part, unless it drops the partition.
  ///
  /// `ahead` is told of every group that is applied; it may be null.
  std::optional<ApplyResult> Apply(const Part& part, PartProgress* progress, WorkLimit* work,
                                   PushAhead* ahead = nullptr);
  /// As above, in one call without a limit.
  ApplyResult Apply(const Part& part, PushAhead* ahead = nullptr);
  /// True while a part is half applied. Then no image may begin, because it would contain half a
  /// part, and its window would list the part's minibatch.
  bool holds_half() const;

  /// Copies rows into `values: [keys.size(), dim] float32 row-major`. An absent row gets its
  /// initial value and is not created. kNotFound: unknown table; kInvalidArgument: wrong sizes or
  /// keys out of range.
  absl::Status Pull(TableId table, std::span<const uint64_t> keys, std::span<float> values) const;
  /// Returns the table for Gather, which reads many groups of many partitions in slices. Between
  /// two slices, rows may change, for example by pushes. Null if the table is not known. Valid
  /// until the partition is restored or dropped.
  const Table* FindTable(TableId table) const;
  /// Prefetches the data of the window that a part of this shard will need.
  void PrefetchWindow(const ShardId& shard) const;

  /// Forgets shards (docs/protocol.md section 3 item 7) and takes over the floor, in one step.
  void Forget(const ForgetState& state);

  /// Begins an image of the state at this instant, the cut. Its rows stay dirty until
  /// Accepted(number). CopyImage continues the image, slice by slice. Later changes are not in it:
  /// if a row changes before it was copied, it is copied first. Requires that no part is half
  /// applied and that no image is being copied.
  void BeginImage(SnapshotNumber number, SnapshotKind kind);
  /// Returns true when the image is complete; then TakeImage returns it.
  bool CopyImage(WorkLimit* work);
  PartitionImage TakeImage();
  /// Ends the image that is being copied, if there is one.
  void DropImage();
  /// Makes an image of this instant in one call.
  PartitionImage Snapshot(SnapshotNumber number, SnapshotKind kind);
  /// The snapshot is in the manifest, so its rows are no longer dirty (unless they changed since).
  /// Only the newest snapshot can be accepted, and only once. For any other snapshot, nothing
  /// changes, its rows come again, and the result is false. O(tables), however many rows it has.
  bool Accepted(SnapshotNumber number);
  /// True if the accepted snapshot also describes the present state: no row, table or window entry
  /// was added or changed since. If none was ever accepted, an empty partition takes its place.
  /// Forgetting and the floor do not count: the older window still lists every minibatch of a shard
  /// that was forgotten since, so it skips everything that the newer floor would refuse.
  bool UnchangedSinceAccepted() const;

  /// Builds the state from images, base first. Without images, the partition is empty. Everything
  /// in them counts as accepted under `number`. kDataLoss says which image contradicts itself or
  /// the others. The partition then stays as it was.
  absl::Status Restore(SnapshotNumber number, std::span<const PartitionImage> images);

  /// Moves memory that takes long to free to `garbage`.
  void TakeGarbage(Garbage* garbage);

  struct Sizes {
    uint64_t rows = 0;
    uint64_t row_bytes = 0;
    uint64_t dirty_rows = 0;
    uint64_t window_shards = 0;
  };
  Sizes sizes() const;
  LeaseToken floor() const;
  /// True if the rows contain the minibatch's part.
  bool InWindow(const ShardId& shard, MinibatchIndex minibatch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::ps
