#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::verify {

/// What a record with number `id` adds to the tables of the workload, all of it small whole
/// numbers, so that sums in float32 are exact whatever their order:
///
///   table    shape         key of the record's row         adds in column (element) j
///   ids      sparse, 1     id                              8^(epoch mod 8)
///   buckets  sparse, 4     id mod 61                       j = 0: 1; else (id + j) mod 7 - 3
///   wide     sparse, 33    (id mod 257) kSpread mod 2^64   j = 0: 1; else (id (j + 1)) mod 5 - 2
///   totals   dense, 3 x 5                                  j = 0: 1; else (id + 3 j) mod 9 - 4
///
/// Rows of `buckets` start at 2, all others at 0. So a row of `ids`, written to the base 8, says of
/// each epoch how often its record took effect, and column 0 of the others counts effects.
inline constexpr uint32_t kIdsDim = 1;
inline constexpr uint32_t kBucketsDim = 4;
inline constexpr uint32_t kWideDim = 33;
inline constexpr uint64_t kTotalsRows = 3;
inline constexpr uint64_t kTotalsColumns = 5;
inline constexpr uint64_t kTotalsSize = kTotalsRows * kTotalsColumns;
inline constexpr float kBucketsInitial = 2;
inline constexpr uint64_t kSpread = 0x9e3779b97f4a7c15ULL;
inline constexpr uint64_t kIdMax = 1'000'000'000;
/// Bits of a row of `ids` for one epoch.
inline constexpr uint32_t kEpochBits = 3;
inline constexpr uint32_t kEpochDigitMax = (1U << kEpochBits) - 1;
/// From here on the epochs of a row of `ids` would meet again.
inline constexpr uint32_t kEpochsMax = 8;

/// See the table above.
struct Contribution {
  uint64_t bucket_key = 0;
  uint64_t wide_key = 0;
  std::array<float, kIdsDim> ids{};
  std::array<float, kBucketsDim> buckets{};
  std::array<float, kWideDim> wide{};
  std::array<float, kTotalsSize> totals{};
};
Contribution ContributionOf(uint64_t id, uint32_t epoch);

/// The id on a line: decimal digits, up to kIdMax. None if the line is anything else.
std::optional<uint64_t> ParseId(std::string_view line);

}  // namespace muster::verify
