#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::sdk {

/// Copies rows to the places of the ids that they belong to: `rows: [ids.size(), dim] float32
/// row-major`. Row i goes to row `first[ids[i]]` of `out`, or, where `first` is empty, to row
/// `ids[i]`.
void PlaceRows(std::span<const uint32_t> ids, std::span<const uint32_t> first, size_t dim,
               const float* rows, float* out);
/// Copies rows of ids to the places of all keys: `out: [inverse.size(), dim] float32 row-major`.
void ExpandRows(std::span<const uint32_t> inverse, size_t dim, const float* rows, float* out);
/// Copies rows to the places of their repeats: `out: [inverse.size(), dim] float32 row-major`. Of
/// each id, row `first[id]` is there already.
void RepeatRows(std::span<const uint32_t> inverse, std::span<const uint32_t> first, size_t dim,
                float* out);

/// Where rows are written to.
enum class Reading {
  kSoon,   // they are read while still in the caches
  kLater,  // other data comes in between, so they bypass the caches: half the memory traffic
};
/// Memory of this many bytes or more that is filled as a whole is read later.
inline constexpr size_t kReadLaterBytesMin = 8u << 20;

/// Copies one row. kLater: call FinishRows before another thread reads it.
void CopyRow(const float* from, size_t floats, Reading reading, float* to);
void FinishRows();

enum class RowsBefore {
  kNone,  // the row's old contents do not count: its first gradient is stored
  kSome,  // every gradient is added
};
/// Adds gradients to the rows of their keys, `gradients: [keys, dim] float32 row-major`; the row of
/// id begins at `values + offset[id]`. Ids count in the order of first appearance. True: every sum
/// is finite (a sum that was not finite in between is not finite at the end either). Another thread
/// may read them afterwards.
bool SumRows(std::span<const uint32_t> inverse, std::span<const uint64_t> offset, size_t keys,
             size_t dim, const float* gradients, RowsBefore before, Reading reading, float* values);

}  // namespace muster::sdk
