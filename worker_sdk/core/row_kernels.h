#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::sdk {

/// Where the rows that a trainer's keys ask for lie: the row of key i begins at
/// `bases[part[id]] + offset[id]`, where `id` is `inverse[i]`, or i when `inverse` is empty.
struct RowPlaces {
  std::span<const uint32_t> inverse;
  std::span<const uint32_t> part;
  std::span<const uint64_t> offset;
};

/// Copies the rows of all keys, repeats too: `out: [keys, dim] float32 row-major`. `bases`: by
/// part.
void CopyRows(const RowPlaces& places, std::span<const float* const> bases, size_t keys, size_t dim,
              float* out);

/// Where rows are written to.
enum class Reading {
  kSoon,   // they are read while they are in the caches
  kLater,  // other data comes in between: they go past the caches, which halves what memory moves
};
/// Memory that is filled as a whole, of so many bytes or more, is read later.
inline constexpr size_t kReadLaterBytesMin = 8u << 20;

/// Copies one row. kLater: before another thread may read it, FinishRows is to be called.
void CopyRow(const float* from, size_t floats, Reading reading, float* to);
void FinishRows();

enum class RowsBefore {
  kNone,  // what a row held does not count: its first gradient is stored
  kSome,  // every gradient is added
};
/// Adds gradients to the rows of their keys, `gradients: [keys, dim] float32 row-major`; the row of
/// id begins at `values + offset[id]`. Ids count in the order of first appearance. True: every sum
/// is finite (one that was not, on the way, is not at the end either). Another thread may read them
/// afterwards.
bool SumRows(std::span<const uint32_t> inverse, std::span<const uint64_t> offset, size_t keys,
             size_t dim, const float* gradients, RowsBefore before, Reading reading, float* values);

}  // namespace muster::sdk
