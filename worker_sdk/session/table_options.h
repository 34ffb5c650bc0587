#pragma once

#include "absl/status/statusor.h"
#include "muster/table.h"
#include "proto/messages/table_spec.h"

namespace muster::sdk {

/// Floats in a block of a dense tensor: a tensor of up to this many elements is one block.
inline constexpr uint32_t kDenseBlockMax = 1024;

/// Converts the options of the public header to a TableSpec (id 0). kInvalidArgument names the
/// table, the option and its value. A warm start's folder becomes absolute.
absl::StatusOr<TableSpec> SpecOf(const SparseTableOptions& options);
absl::StatusOr<TableSpec> SpecOf(const DenseTableOptions& options);

/// Elements of a dense table's tensor.
uint64_t ElementCount(const TableSpec& table);

}  // namespace muster::sdk
