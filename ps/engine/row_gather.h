#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "base/work_limit.h"

namespace muster::ps {

class Table;

/// Rows wanted of one table in one partition: `values: [keys.size(), dim] float32 row-major`.
struct PullGroup {
  /// Null: the partition does not know it.
  const Table* table = nullptr;
  std::span<const uint64_t> keys;
  std::span<float> values;
  /// The begin of this group belongs to the group before: a slice does not end between the two,
  /// only before a row.
  bool goes_on = false;
  /// The cost of the caller's own work for the group, in bytes of the limit.
  uint64_t more_work = 0;
};

/// The progress of a gather.
struct Gathered {
  size_t group = 0;  // groups before this one are done,
  size_t row = 0;    // and of this one the rows before this one
  /// Why `group` cannot be done. kNotFound: its table is not known; kInvalidArgument: sizes or key
  /// range.
  absl::Status status;
};

/// Copies the rows of many groups, beginning at `first_row` of the first group, until all are done,
/// the work limit is spent, or one fails. An absent row gets its initial values and is not created.
/// It prefetches across all groups: while one row is copied, later rows and the index places of
/// still later rows are being loaded. So a hundred groups of one row in a hundred partitions cost
/// no more than one group of a hundred rows. The groups may be of any tables of one thread.
Gathered Gather(std::span<const PullGroup> groups, size_t first_row, WorkLimit* work);

}  // namespace muster::ps
