#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/words/types.h"
#include "base/work_limit.h"
#include "proto/messages/table_spec.h"
#include "ps/engine/garbage.h"
#include "ps/engine/prefetch.h"
#include "ps/engine/row_index.h"
#include "ps/engine/row_store.h"
#include "ps/engine/slab_list.h"
#include "ps/engine/table_image.h"
#include "ps/engine/warm_start.h"

namespace muster::ps {

/// One table's rows in one partition: values and optimizer slots in one block per row, an index by
/// key, and the lists of rows that changed since the accepted snapshot (dirty). Dense tables are
/// the same with keys below DenseBlockCount. Pure; not thread-safe, owned by the partition.
///
/// Every image ends a generation, and every row remembers the generation of its last change. Dirty
/// rows are in two lists: those of the newest image, until it is accepted, and those changed since.
/// So an acceptance drops one list, however many rows are in it. An image that is never accepted
/// loses nothing: the next one has its rows again.
///
/// The work of a call does not grow with the rows of the table. A function that visits many rows
/// takes a WorkLimit and is called again until it is done. An image shows the table at its begin: a
/// row that changes before it was copied is copied first.
class Table {
 public:
  /// `spec` is checked by the master: dim >= 1 and finite, sensible parameters.
  Table(TableSpec spec, uint64_t seed);

  const TableSpec& spec() const { return spec_; }
  uint32_t dim() const { return dim_; }
  uint32_t floats_per_row() const { return store_.floats_per_row(); }
  uint64_t rows() const { return store_.size(); }
  /// A new table with the rows that `source` has for the partition; all of them are dirty. Takes
  /// long for a large table: any thread may do it before the partition adopts the table.
  static std::unique_ptr<Table> Filled(const TableSpec& spec, uint64_t seed, PartitionId partition,
                                       const WarmStartSource& source);

  /// Memory of rows, index and lists, including the reserve for more rows.
  uint64_t bytes() const;
  uint64_t dirty_rows() const { return changed_.size() + imaged_only_; }
  /// The version of all values, including those of absent rows. It changes with every change, so
  /// two
  /// contents of this object never have the same version. Another object of the table (after a
  /// restore, or at another owner) counts on its own, so a version is valid only together with the
  /// owner epoch. One version for all rows is enough, because dense tensors, which use it, pull and
  /// push all rows.
  uint64_t version() const { return version_; }

  /// Check if rows can be applied or pulled: sizes, key range of a dense table, finite gradients.
  /// kInvalidArgument says what is wrong, with table, key and value. Their cost grows with the
  /// arguments, which may be any piece of a group's keys and values.
  absl::Status CheckPull(std::span<const uint64_t> keys, size_t values) const;
  absl::Status CheckPush(std::span<const uint64_t> keys, std::span<const float> gradients) const;
  /// True if the table has room for so many more rows.
  absl::Status CheckRoom(size_t rows) const;

  /// One optimizer step on each row, until the work limit is spent; returns how many rows were
  /// done. Requires that CheckPush and CheckRoom passed. An absent row is created with its initial
  /// values first. Keys should be unique; a key that comes twice takes two steps.
  size_t Apply(std::span<const uint64_t> keys, std::span<const float> gradients, uint64_t step,
               WorkLimit* work);

  /// Says that a row has a value that is NaN or infinite, with table, key and column; empty: none
  /// has. A step makes one from finite gradients when it overflows. It stays: nothing makes such a
  /// row finite again.
  const std::string& not_finite() const { return not_finite_; }

  /// Copies values, `[keys.size(), dim]`, until the work limit is spent; returns how many rows were
  /// done. See Gather. Requires that CheckPull passes.
  size_t Pull(std::span<const uint64_t> keys, std::span<float> values, WorkLimit* work) const;

  /// Start to load what Apply will need for a key: its place in the index, and, a little later, its
  /// row, if there is one.
  void PrefetchPlace(uint64_t key) const { index_.Prefetch(key); }
  void PrefetchRow(uint64_t key) const {
    if (const RowIndex::Entry* entry = index_.Find(key)) {
      PrefetchFloats<CacheLevel::kSecond>(store_.Row(entry->row()), floats_per_row());
    }
  }

  /// Sets a row's values and gives it fresh slots; the row is dirty.
  void SetValues(uint64_t key, std::span<const float> values);
  /// Sets a whole row; it is as clean or dirty as it was (a new one is clean).
  void SetRow(uint64_t key, std::span<const float> row);

  enum class Rows { kAll, kDirty };
  /// Begins an image of the rows as they are now, the cut. Every dirty row is in it, and stays
  /// dirty. Requires that none is being copied.
  void BeginImage(Rows which);
  /// Continues it until the work limit is spent. True: it is complete, and TakeImage returns it.
  bool CopyImage(WorkLimit* work);
  RowImage TakeImage();
  /// Ends an image that is no longer wanted.
  void DropImage();
  /// The newest image is accepted: its rows are no longer dirty, unless they changed since.
  /// Requires that none is being copied.
  void Accept();

  /// Hands out memory that takes long to free.
  void TakeGarbage(Garbage* garbage);

 private:
  friend class RowGather;
  static constexpr size_t kBatch = 32;  // rows in flight between prefetch and use

  using Generation = uint32_t;

  using RowList = SlabList<uint32_t>;
  /// An image that is being copied, and its progress.
  struct Copying {
    Rows which;
    TableImage image;
    uint32_t row = 0;              // kAll: those before it are copied
    size_t list = 0;               // of imaged_: those before it are done,
    size_t position = 0;           // and of this one the rows before this position
    std::optional<RowSet> listed;  // when there are several lists: what is in `merged`
    RowList merged;
  };

  /// Remembers the first of these rows that is not finite.
  void Watch(std::span<const uint64_t> keys, std::span<float* const> rows);
  float* Touch(uint64_t key);
  uint32_t Create(uint64_t key);
  /// The entry's row is about to change: an image that is being copied needs it as it is.
  void KeepForImage(const RowIndex::Entry& entry);
  void CopyRow(uint32_t row, WorkLimit* work);
  bool CopyLists(WorkLimit* work);
  uint64_t WorkPerRow() const;

  // The members that every row needs come first, so that they share few cache lines.
  uint32_t dim_;
  RowIndex index_;
  RowStore store_;
  uint64_t blocks_;  // of a dense table; UINT64_MAX for a sparse one
  uint64_t seed_;
  uint64_t version_ = 1;  // 0 is no version
  Generation generation_ = 1;
  Generation accepted_ = 0;  // everything of this and earlier ones is in the accepted image
  TableSpec spec_;
  SlabList<uint64_t> keys_;  // by row number
  /// Row numbers; exactly those whose generation is generation_, each once.
  RowList changed_;
  /// The rows that were dirty at the newest image, until it is accepted. Each list has a row once;
  /// there are several lists until the image is copied.
  std::vector<RowList> imaged_;
  uint64_t imaged_only_ = 0;  // of them, those not in changed_
  std::unique_ptr<Copying> copying_;
  Garbage garbage_;
  std::string not_finite_;
};

}  // namespace muster::ps
