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
  /// What comes first is one with the group before it: no slice ends between the two, but where a
  /// row is next.
  bool goes_on = false;
  /// What the caller does for the group, in the limit's bytes.
  uint64_t more_work = 0;
};

/// How far a gather is.
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
