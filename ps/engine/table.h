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
#include "proto/messages/table_spec.h"
#include "ps/engine/garbage.h"
#include "ps/engine/prefetch.h"
#include "ps/engine/row_index.h"
#include "ps/engine/row_store.h"
#include "ps/engine/slab_list.h"
#include "ps/engine/table_image.h"
#include "ps/engine/warm_start.h"

namespace muster::ps {

/// One table's rows in one partition. Each row has its values and optimizer slots in one block.
/// There is an index by key, and there are lists of the rows that changed since the accepted
/// snapshot (dirty). A dense table is the same, with keys below DenseBlockCount. Pure; not
/// thread-safe; the partition owns it.
///
/// Every image ends a generation, and every row remembers the generation of its last change. The
/// dirty rows are in two lists: one has those of the newest image, until it is accepted; the other
/// has those that changed since. So an acceptance drops one list, however many rows are in it. If
/// an image is never accepted, nothing is lost, because the next image has its rows again.
///
/// The work of a call does not grow with the rows of the table. A function that visits many rows
/// takes a WorkLimit and is called again until it is done. An image shows the table at the image's
/// begin: if a row changes before it was copied, it is copied first.
class Table {
 public:
  /// The master has checked `spec`: dim >= 1, and finite, sensible parameters.
  Table(TableSpec spec, uint64_t seed);
  /// A model of many tables has one object for each table in each partition, and a request visits
  /// most of them: they lie in huge pages, too.
  static void* operator new(size_t bytes) { return slab_memory::Take(bytes); }
  static void operator delete(void* block, size_t bytes) { slab_memory::Give(block, bytes); }

  const TableSpec& spec() const { return spec_; }
  uint32_t dim() const { return dim_; }
  uint32_t floats_per_row() const { return store_.floats_per_row(); }
  uint64_t rows() const { return store_.size(); }
  /// Makes a new table with the rows that `source` has for the partition. All of them are dirty.
  /// This takes long for a large table. Any thread may do it before the partition adopts the table.
  static std::unique_ptr<Table> Filled(const TableSpec& spec, uint64_t seed, PartitionId partition,
                                       const WarmStartSource& source);

  /// The memory of rows, index and lists, including the reserve for more rows.
  uint64_t bytes() const;
  uint64_t dirty_rows() const { return changed_.size() + imaged_only_; }
  /// What the partition's sums have of the table, and whether it has changed since. The partition
  /// uses both: so its sums cost only the tables that changed.
  struct Counted {
    uint64_t rows = 0;
    uint64_t bytes = 0;
    uint64_t dirty_rows = 0;
  };
  Counted* counted() { return &counted_; }
  /// Returns false if it was called since the last recount.
  bool WantsRecount() { return !std::exchange(recount_, true); }
  void Recounted() { recount_ = false; }
  /// The version of all values, including those of absent rows. It grows with every change, so two
  /// different contents of this object never have the same version. Another object of the table
  /// (after a restore, or at another owner) counts on its own, so a version is valid only together
  /// with the owner epoch. One version for all rows is enough, because only dense tensors use it,
  /// and they pull and push all rows.
  uint64_t version() const { return version_; }

  /// Check if rows can be pulled or applied: sizes, key range of a dense table, finite gradients.
  /// kInvalidArgument says what is wrong, with table, key and value. The cost grows with the
  /// arguments, which may be any piece of a group's keys and values.
  absl::Status CheckPull(std::span<const uint64_t> keys, size_t values) const;
  absl::Status CheckPush(std::span<const uint64_t> keys, std::span<const float> gradients) const;
  /// Returns OK if the table has room for so many more rows.
  absl::Status CheckRoom(size_t rows) const;

  /// Does one optimizer step on each row until the work limit is spent. Returns how many rows were
  /// done. Requires that CheckPush and CheckRoom passed. An absent row is first created with its
  /// initial values. Keys should be unique; a key that comes twice takes two steps.
  size_t Apply(std::span<const uint64_t> keys, std::span<const float> gradients, uint64_t step,
               WorkLimit* work);

  /// Names a row that has a value that is NaN or infinite: table, key and column. Empty if there is
  /// none. Finite gradients make such a value when a step overflows. It stays, because nothing
  /// makes such a row finite again.
  const std::string& not_finite() const { return not_finite_; }
  /// True while not_finite() is empty.
  bool finite() const { return finite_; }

  /// Copies values, `[keys.size(), dim]`, until the work limit is spent. Returns how many rows were
  /// done. See Gather. Requires that CheckPull passes.
  size_t Pull(std::span<const uint64_t> keys, std::span<float> values, WorkLimit* work) const;

  /// Start to load what Pull and Apply will need: first the object itself, then a key's place in
  /// the index, and a little later its row, if there is one.
  void PrefetchForPull() const { PrefetchLines(kPullLines); }
  void PrefetchForPush() const { PrefetchLines(kPushLines); }
  void PrefetchPlace(uint64_t key) const {
    index_.Prefetch(key);
    store_.Prefetch();
  }
  void PrefetchRow(uint64_t key) const {
    if (const RowIndex::Entry* entry = index_.Find(key)) {
      PrefetchFloats<CacheLevel::kSecond>(store_.Row(entry->row()), floats_per_row());
    }
  }

  /// Sets a row's values and gives it fresh slots. The row is then dirty.
  void SetValues(uint64_t key, std::span<const float> values);
  /// Sets a whole row. It stays as clean or dirty as it was. A new row is clean.
  void SetRow(uint64_t key, std::span<const float> row);

  enum class Rows { kAll, kDirty };
  /// Begins an image of the rows as they are now, the cut. Every dirty row is in it, and stays
  /// dirty. Requires that no image is being copied.
  void BeginImage(Rows which);
  /// Continues the image until the work limit is spent. Returns true when it is complete; then
  /// TakeImage returns it.
  bool CopyImage(WorkLimit* work);
  RowImage TakeImage();
  /// Ends an image that is no longer wanted.
  void DropImage();
  /// The newest image is accepted, so its rows are no longer dirty, unless they changed since.
  /// Requires that no image is being copied.
  void Accept();

  /// Moves memory that takes long to free to `garbage`.
  void TakeGarbage(Garbage* garbage);

 private:
  friend class RowGather;
  static constexpr size_t kBatch = 32;  // rows in flight between prefetch and use
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kPullLines = 3;  // of the members that every pull needs
  static constexpr size_t kPushLines = 6;  // and every push

  using Generation = uint32_t;

  using RowList = SlabList<uint32_t>;
  /// An image that is being copied, and its progress.
  struct Copying {
    Rows which;
    TableImage image;
    uint32_t row = 0;              // for kAll: the rows before this one are copied
    size_t list = 0;               // the lists of imaged_ before this one are done
    size_t position = 0;           // in this list, the rows before this position are done
    std::optional<RowSet> listed;  // what is in `merged`, if there are several lists
    RowList merged;
  };

  void PrefetchLines(size_t lines) const {
    for (size_t line = 0; line < lines; ++line) {
      Prefetch<CacheLevel::kSecond>(reinterpret_cast<const char*>(this) + line * kLineBytes);
    }
  }
  /// Remembers the first of these rows that is not finite.
  void Watch(std::span<const uint64_t> keys, std::span<float* const> rows);
  float* Touch(uint64_t key);
  uint32_t Create(uint64_t key);
  /// Copies the entry's row, which is about to change, if the image that is being copied still
  /// needs it.
  void KeepForImage(const RowIndex::Entry& entry);
  void CopyRow(uint32_t row, WorkLimit* work);
  bool CopyLists(WorkLimit* work);
  uint64_t WorkPerRow() const;

  // The members that every row needs come first, so that they share few cache lines.
  alignas(kLineBytes) uint32_t dim_;
  bool finite_ = true;
  bool recount_ = false;
  RowIndex index_;
  RowStore store_;
  uint64_t blocks_;  // in a dense table; UINT64_MAX in a sparse one
  uint64_t seed_;
  uint64_t version_ = 1;  // 0 is no version
  Generation generation_ = 1;
  Generation accepted_ = 0;  // the accepted image has everything up to this one
  std::unique_ptr<Copying> copying_;
  TableSpec spec_;
  SlabList<uint64_t> keys_;  // by row number
  /// The numbers of exactly those rows whose generation is generation_, each once.
  RowList changed_;
  /// The rows that were dirty at the newest image, until it is accepted. Each list has a row only
  /// once. There may be several lists until the image is copied.
  std::vector<RowList> imaged_;
  uint64_t imaged_only_ = 0;  // how many of them are not in changed_
  Garbage garbage_;
  std::string not_finite_;
  Counted counted_;
};

}  // namespace muster::ps
