#pragma once

#include <cstdint>
#include <span>

#include "proto/messages/table_spec.h"

namespace muster::ps {

/// A row is one block of floats: `dim` values, then the optimizer's slots. docs/optimizers.md has
/// the formulas with their sources, and the meaning of every slot.

/// How many floats of slots follow the `dim` values of a row.
uint32_t SlotFloats(const OptimizerSpec& optimizer, uint32_t dim);

/// Sets the slots of a row that was never pushed. `row: [dim + SlotFloats] float32`. The values of
/// the row must be set already, because FTRL's slots depend on them.
void InitSlots(const OptimizerSpec& optimizer, uint32_t dim, float* row);

/// Does one optimizer step on each of `rows`, in order. `gradients: [rows.size(), dim] float32
/// row-major`, finite. `rate_factor` comes from the schedule. If a row is named twice, it takes two
/// steps.
void ApplyRows(const OptimizerSpec& optimizer, float rate_factor, uint32_t dim,
               std::span<float* const> rows, const float* gradients);

/// The position in `rows` of the first row that has a NaN or an infinity in its first `floats`
/// floats. rows.size() if no row has one.
size_t FirstNonFiniteRow(std::span<float* const> rows, size_t floats);

/// The position of the first NaN or infinity. values.size() if there is none.
size_t FirstNonFinite(std::span<const float> values);

}  // namespace muster::ps
