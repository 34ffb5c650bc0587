// Highway compiles this once per instruction set, and chooses the best one for the machine at run
// time. Every instruction set adds in the same order, so it gives the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker_sdk/core/row_kernels.cc"
#include "hwy/detect_targets.h"
// AVX-512 does not help loops that wait for memory.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// Highway's headers come after foreach_target.h, by its rule.
#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "worker_sdk/core/row_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace muster::sdk {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Prefetches so many rows ahead, because memory takes as long as the copy of a few rows.
constexpr size_t kRowsAhead = 8;
constexpr size_t kFloatsPerLine = 16;
/// After this many bytes, the processor's own prefetcher follows the row.
constexpr size_t kPrefetchFloatsMax = 256;

/// `kWrite`: it is about to be written.
template <int kWrite>
HWY_INLINE void PrefetchRow(const float* row, size_t dim) {
  const size_t floats = std::min(dim, kPrefetchFloatsMax);
  for (size_t i = 0; i < floats; i += kFloatsPerLine) __builtin_prefetch(row + i, kWrite);
}

/// Stores past the caches take whole, aligned vectors.
HWY_INLINE bool MayPassCaches(const float* to, size_t dim) {
  const hn::ScalableTag<float> d;
  return reinterpret_cast<uintptr_t>(to) % (hn::Lanes(d) * sizeof(float)) == 0 &&
         dim % hn::Lanes(d) == 0;
}

HWY_INLINE void CopyCached(const float* from, size_t dim, float* out) {
  const hn::ScalableTag<float> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= dim; i += hn::Lanes(d)) hn::StoreU(hn::LoadU(d, from + i), d, out + i);
  for (; i < dim; ++i) out[i] = from[i];
}

void PlaceRowsKernel(std::span<const uint32_t> ids, std::span<const uint32_t> first, size_t dim,
                     const float* rows, float* out) {
  const bool repeats = !first.empty();
  const auto place = [&](size_t i)
                         HWY_ATTR { return out + size_t{repeats ? first[ids[i]] : ids[i]} * dim; };
  for (size_t i = 0; i < std::min(ids.size(), kRowsAhead); ++i) PrefetchRow<1>(place(i), dim);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kRowsAhead < ids.size()) PrefetchRow<1>(place(i + kRowsAhead), dim);
    CopyCached(rows + i * dim, dim, place(i));
  }
}

void ExpandRowsKernel(std::span<const uint32_t> inverse, size_t dim, const float* rows,
                      float* out) {
  const auto row = [&](size_t i) { return rows + size_t{inverse[i]} * dim; };
  for (size_t i = 0; i < std::min(inverse.size(), kRowsAhead); ++i) PrefetchRow<0>(row(i), dim);
  for (size_t i = 0; i < inverse.size(); ++i) {
    if (i + kRowsAhead < inverse.size()) PrefetchRow<0>(row(i + kRowsAhead), dim);
    CopyCached(row(i), dim, out + i * dim);
  }
}

void RepeatRowsKernel(std::span<const uint32_t> inverse, std::span<const uint32_t> first,
                      size_t dim, float* out) {
  for (size_t i = 0; i < inverse.size(); ++i) {
    const size_t from = first[inverse[i]];
    if (from != i) CopyCached(out + from * dim, dim, out + i * dim);
  }
}

void CopyRowKernel(const float* from, size_t floats, Reading reading, float* to) {
  if (reading == Reading::kSoon || !MayPassCaches(to, floats)) return CopyCached(from, floats, to);
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < floats; i += hn::Lanes(d)) hn::Stream(hn::LoadU(d, from + i), d, to + i);
}

/// The bits of `value` where it is not finite, and zeros elsewhere.
template <typename Floats, typename Value>
HWY_INLINE auto NotFinite(Floats /*tag*/, Value value) {
  const hn::RebindToUnsigned<Floats> bits;
  // Exponent bits all set: infinity or NaN.
  const auto exponent = hn::Set(bits, 0x7f800000u);
  return hn::VecFromMask(bits, hn::Eq(hn::And(hn::BitCast(bits, value), exponent), exponent));
}

/// Adds to a row, or stores it. Records values that are not finite in `bad`, for whole vectors and
/// for the rest.
template <RowsBefore kBefore, Reading kReading, typename Bad, typename LastBad>
HWY_INLINE void AddRow(const float* from, size_t dim, float* into, Bad* bad, LastBad* last_bad) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto step = [&](auto tag, size_t i, auto* noted) HWY_ATTR {
    auto sum = hn::LoadU(tag, from + i);
    if constexpr (kBefore == RowsBefore::kSome) sum = hn::Add(hn::LoadU(tag, into + i), sum);
    if constexpr (kReading == Reading::kLater) {
      hn::Stream(sum, tag, into + i);
    } else {
      hn::StoreU(sum, tag, into + i);
    }
    *noted = hn::Or(*noted, NotFinite(tag, sum));
  };
  size_t i = 0;
  for (; i + hn::Lanes(d) <= dim; i += hn::Lanes(d)) step(d, i, bad);
  for (; i < dim; ++i) step(one, i, last_bad);
}

bool SumRowsKernel(std::span<const uint32_t> inverse, std::span<const uint64_t> offset, size_t keys,
                   size_t dim, const float* gradients, RowsBefore before, Reading reading,
                   float* values) {
  const bool repeats = !inverse.empty();
  const auto id_of = [&](size_t key) { return repeats ? inverse[key] : key; };
  const hn::ScalableTag<uint32_t> bits;
  const hn::CappedTag<uint32_t, 1> one;
  auto bad = hn::Zero(bits);
  auto last_bad = hn::Zero(one);
  const bool past = reading == Reading::kLater && MayPassCaches(values, dim);
  // The id whose first appearance comes next.
  size_t unseen = before == RowsBefore::kNone ? 0 : SIZE_MAX;
  for (size_t key = 0; key < keys; ++key) {
    if (!past && key + kRowsAhead < keys) {
      PrefetchRow<0>(values + offset[id_of(key + kRowsAhead)], dim);
    }
    const size_t id = id_of(key);
    const float* const from = gradients + key * dim;
    if (id == unseen) {
      ++unseen;
      if (past && MayPassCaches(values + offset[id], dim)) {
        AddRow<RowsBefore::kNone, Reading::kLater>(from, dim, values + offset[id], &bad, &last_bad);
      } else {
        AddRow<RowsBefore::kNone, Reading::kSoon>(from, dim, values + offset[id], &bad, &last_bad);
      }
    } else {
      AddRow<RowsBefore::kSome, Reading::kSoon>(from, dim, values + offset[id], &bad, &last_bad);
    }
  }
  if (past) hwy::FlushStream();
  return hn::AllTrue(bits, hn::Eq(bad, hn::Zero(bits))) && hn::GetLane(last_bad) == 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace muster::sdk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::sdk {

HWY_EXPORT(CopyRowKernel);
HWY_EXPORT(PlaceRowsKernel);
HWY_EXPORT(ExpandRowsKernel);
HWY_EXPORT(RepeatRowsKernel);
HWY_EXPORT(SumRowsKernel);

void PlaceRows(std::span<const uint32_t> ids, std::span<const uint32_t> first, size_t dim,
               const float* rows, float* out) {
  HWY_DYNAMIC_DISPATCH(PlaceRowsKernel)(ids, first, dim, rows, out);
}

void ExpandRows(std::span<const uint32_t> inverse, size_t dim, const float* rows, float* out) {
  HWY_DYNAMIC_DISPATCH(ExpandRowsKernel)(inverse, dim, rows, out);
}

void RepeatRows(std::span<const uint32_t> inverse, std::span<const uint32_t> first, size_t dim,
                float* out) {
  HWY_DYNAMIC_DISPATCH(RepeatRowsKernel)(inverse, first, dim, out);
}

void CopyRow(const float* from, size_t floats, Reading reading, float* to) {
  HWY_DYNAMIC_DISPATCH(CopyRowKernel)(from, floats, reading, to);
}

void FinishRows() {
  hwy::FlushStream();
}

bool SumRows(std::span<const uint32_t> inverse, std::span<const uint64_t> offset, size_t keys,
             size_t dim, const float* gradients, RowsBefore before, Reading reading,
             float* values) {
  return HWY_DYNAMIC_DISPATCH(SumRowsKernel)(inverse, offset, keys, dim, gradients, before, reading,
                                             values);
}

}  // namespace muster::sdk
#endif  // HWY_ONCE
