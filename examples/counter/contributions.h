#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace counter {

/// What a record with number `id` adds to the tables of the counter job, all of it small whole
/// numbers, so that sums in float32 are exact whatever their order:
///
///   table    shape         key of the record's row         adds in column (element) j
///   ids      sparse, 1     id                              1 + id mod 3
///   buckets  sparse, 4     id mod 61                       (id + j) mod 7 - 3
///   wide     sparse, 33    (id mod 257) kSpread mod 2^64   (id (j + 1)) mod 5 - 2
///   totals   dense, 3 x 5                                  (id + 3 j) mod 9 - 4
///
/// Rows of `buckets` start at 2, all others at 0.
inline constexpr uint32_t kIdsDim = 1;
inline constexpr uint32_t kBucketsDim = 4;
inline constexpr uint32_t kWideDim = 33;
inline constexpr uint64_t kTotalsRows = 3;
inline constexpr uint64_t kTotalsColumns = 5;
inline constexpr uint64_t kTotalsSize = kTotalsRows * kTotalsColumns;
inline constexpr float kBucketsInitial = 2;
inline constexpr uint64_t kSpread = 0x9e3779b97f4a7c15ULL;
inline constexpr uint64_t kIdMax = 1'000'000'000;

/// See the table above.
struct Contribution {
  uint64_t bucket_key = 0;
  uint64_t wide_key = 0;
  std::array<float, kIdsDim> ids{};
  std::array<float, kBucketsDim> buckets{};
  std::array<float, kWideDim> wide{};
  std::array<float, kTotalsSize> totals{};
};
Contribution ContributionOf(uint64_t id);

/// The id on a line: decimal digits, up to kIdMax. Nothing when the line is not that.
std::optional<uint64_t> ParseId(std::string_view line);

}  // namespace counter
