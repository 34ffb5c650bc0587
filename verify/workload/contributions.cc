#include "verify/workload/contributions.h"

#include <charconv>

namespace muster::verify {

Contribution ContributionOf(uint64_t id, uint32_t epoch) {
  Contribution result;
  result.bucket_key = id % 61;
  result.wide_key = (id % 257) * kSpread;
  result.ids[0] = static_cast<float>(1U << (kEpochBits * (epoch % kEpochsMax)));
  result.buckets[0] = result.wide[0] = result.totals[0] = 1;
  for (uint64_t j = 1; j < kBucketsDim; ++j) {
    result.buckets[j] = static_cast<float>((id + j) % 7) - 3.0f;
  }
  for (uint64_t j = 1; j < kWideDim; ++j) {
    result.wide[j] = static_cast<float>((id * (j + 1)) % 5) - 2.0f;
  }
  for (uint64_t j = 1; j < kTotalsSize; ++j) {
    result.totals[j] = static_cast<float>((id + 3 * j) % 9) - 4.0f;
  }
  return result;
}

std::optional<uint64_t> ParseId(std::string_view line) {
  uint64_t id = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), id);
  if (code != std::errc() || end != line.data() + line.size() || id > kIdMax) return std::nullopt;
  return id;
}

}  // namespace muster::verify
