#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "ps/engine/row_index.h"
#include "ps/engine/row_store.h"
#include "ps/engine/warm_start.h"
#include "sharding/table_spec.h"
#include "sharding/types.h"

namespace muster::ps {

/// Rows of one table as a snapshot holds them.
struct RowImage {
  TableId table;
  uint32_t floats_per_row = 0;  // values and slots
  std::vector<uint64_t> keys;
  std::vector<float> rows;  // [keys.size(), floats_per_row] row-major
};

/// One table's rows in one partition: values and optimizer slots in one block per row, an index by
/// key, and the lists of rows that changed since the accepted snapshot (dirty). Dense tables are
/// the same with keys below DenseBlockCount. Pure; not thread-safe, owned by the partition.
///
/// Every image ends a generation, and every row remembers the generation of its last change. Dirty
/// rows are in two lists: those of the newest image, until it is accepted, and those changed since.
/// So an acceptance drops one list, however many rows are in it. An image that is never accepted
/// loses nothing: the next one has its rows again.
class Table {
 public:
  /// `spec` is checked by the master: dim >= 1 and finite, sensible parameters.
  Table(TableSpec spec, uint64_t seed);

  const TableSpec& spec() const { return spec_; }
  uint32_t dim() const { return spec_.dim; }
  uint32_t floats_per_row() const { return store_.floats_per_row(); }
  uint64_t rows() const { return store_.size(); }
  /// A new table with the rows that `source` has for the partition; all of them are dirty. Takes
  /// long for a large table: any thread may do it before the partition adopts the table.
  static std::unique_ptr<Table> Filled(const TableSpec& spec, uint64_t seed, PartitionId partition,
                                       const WarmStartSource& source);

  /// Memory of rows, index and lists.
  uint64_t bytes() const;
  uint64_t dirty_rows() const { return changed_.size() + imaged_only_; }

  /// Whether a part with these rows can be applied: sizes, key range of a dense table, finite
  /// gradients. kInvalidArgument says what is wrong, with table, key and value.
  absl::Status Check(std::span<const uint64_t> keys, std::span<const float> gradients) const;
  /// Sizes and key range of a pull.
  absl::Status CheckPull(std::span<const uint64_t> keys, size_t values) const;

  /// One optimizer step on each row. Requires that Check passed. An absent row is created with its
  /// initial values first. Keys should be unique; a key that comes twice takes two steps.
  void Apply(std::span<const uint64_t> keys, std::span<const float> gradients, uint64_t step);

  /// Copies values, `[keys.size(), dim]`; absent rows get their initial values and are not created.
  /// Requires that CheckPull passed.
  void Pull(std::span<const uint64_t> keys, std::span<float> values) const;

  /// Sets a row's values and gives it fresh slots; the row is dirty.
  void SetValues(uint64_t key, std::span<const float> values);
  /// Sets a whole row; it is as clean or dirty as it was (a new one is clean).
  void SetRow(uint64_t key, std::span<const float> row);

  enum class Rows { kAll, kDirty };
  /// Copies rows. Every dirty row is in it, and stays dirty.
  RowImage Image(Rows which);
  /// The newest image is accepted: what was in it is no longer dirty, unless changed since.
  void Accept();

 private:
  static constexpr size_t kBatch = 32;  // rows in flight between prefetch and use

  using Generation = uint32_t;

  float* Touch(uint64_t key);
  uint32_t Create(uint64_t key);

  TableSpec spec_;
  uint64_t seed_;
  uint64_t blocks_;  // of a dense table; UINT64_MAX for a sparse one
  RowIndex index_;
  RowStore store_;
  std::vector<uint64_t> keys_;  // by row number
  Generation generation_ = 1;
  Generation accepted_ = 0;  // everything of this and earlier ones is in the accepted image
  /// Row numbers; exactly those whose generation is generation_, each once.
  std::vector<uint32_t> changed_;
  /// Those that were dirty at the newest image, while it is not accepted, each once.
  std::vector<uint32_t> imaged_;
  uint64_t imaged_only_ = 0;  // of them, those not in changed_
};

}  // namespace muster::ps
