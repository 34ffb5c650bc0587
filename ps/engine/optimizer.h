#pragma once

#include <cstdint>
#include <span>

#include "proto/messages/table_spec.h"

namespace muster::ps {

/// A row is one block of floats: `dim` values, then the optimizer's slots. docs/optimizers.md has
/// the formulas with their sources and the meaning of every slot.

/// Floats of slots behind the values of a row of `dim` values.
uint32_t SlotFloats(const OptimizerSpec& optimizer, uint32_t dim);

/// Sets the slots of a row that was never pushed. `row: [dim + SlotFloats] float32`, its values
/// already set: FTRL's slots depend on them.
void InitSlots(const OptimizerSpec& optimizer, uint32_t dim, float* row);

/// One optimizer step on each of `rows`, in order. `gradients: [rows.size(), dim] float32
/// row-major`, finite. `rate_factor` is the schedule's. A row may be named twice; it then takes
/// two steps.
void ApplyRows(const OptimizerSpec& optimizer, float rate_factor, uint32_t dim,
               std::span<float* const> rows, const float* gradients);

/// The position in `rows` of the first row that has a NaN or an infinity in its first `floats`
/// floats, or rows.size().
size_t FirstNonFiniteRow(std::span<float* const> rows, size_t floats);

/// The position of the first NaN or infinity, or values.size().
size_t FirstNonFinite(std::span<const float> values);

}  // namespace muster::ps
