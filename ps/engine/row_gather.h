#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "base/work_limit.h"

namespace muster::ps {

class Table;

/// Rows of one table in one partition that are wanted: `values: [keys.size(), dim] float32
/// row-major`.
struct PullGroup {
  /// Null if the partition does not know the table.
  const Table* table = nullptr;
  std::span<const uint64_t> keys;
  std::span<float> values;
  /// This group and the one before belong together: a slice may not end between the two. It may
  /// still end before any row of this group.
  bool goes_on = false;
  /// The cost of the caller's own work for the group, in bytes of the work limit.
  uint64_t more_work = 0;
};

/// The progress of a gather.
struct Gathered {
  size_t group = 0;  // the groups before this one are done
  size_t row = 0;    // in this group, the rows before this one are done
  /// Why `group` cannot be done. kNotFound: its table is not known; kInvalidArgument: wrong sizes
  /// or keys out of range.
  absl::Status status;
};

/// Copies the rows of many groups, beginning at `first_row` of the first group. It ends when all
/// groups are done, when the work limit is spent, or when a group fails. An absent row gets its
/// initial values and is not created.
///
/// It prefetches across all groups: while one row is copied, later rows and the index places of
/// still later rows are being loaded. So a hundred groups of one row in a hundred partitions cost
/// no more than one group of a hundred rows. The groups may belong to any tables of one thread.
Gathered Gather(std::span<const PullGroup> groups, size_t first_row, WorkLimit* work);

}  // namespace muster::ps
