#pragma once

#include <cstdint>
#include <span>

#include "proto/messages/table_spec.h"

namespace muster::ps {

/// The inverse of the standard normal distribution function for p in (0, 1), to about 7 digits.
/// Source: M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution",
/// Applied Statistics 37 (1988), routine PPND7.
double InverseNormal(double p);

/// Writes the initial values of row `key`: `values: [dim] float32`. Every value is a pure function
/// of (seed, table, key, column), so it never changes. Uniform values lie in [a, b].
void InitialValues(const InitializerSpec& initializer, uint64_t seed, TableId table, uint64_t key,
                   std::span<float> values);

/// Writes the initial values of one row of `table`; `values.size()` = table.dim. As InitialValues,
/// but the last block of a dense table gets zeros beyond the end of the tensor.
void InitialRow(const TableSpec& table, uint64_t seed, uint64_t key, std::span<float> values);

/// The number of elements of a dense table's tensor: the product of its shape, or the largest
/// number if the product is larger. 0 for a sparse table.
uint64_t ElementCount(const TableSpec& table);

}  // namespace muster::ps
