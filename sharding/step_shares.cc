#include "sharding/step_shares.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

/// A quota of average speed.
constexpr uint64_t kAverage = 1'000;
constexpr uint64_t kFactorMax = 8;

/// `parts` of the whole for each member, by the method of the largest remainder.
std::vector<uint32_t> Divide(uint32_t whole, std::span<const uint64_t> quotas) {
  MUSTER_CHECK(!quotas.empty());
  const uint64_t total = std::accumulate(quotas.begin(), quotas.end(), uint64_t{0});
  std::vector<uint32_t> parts(quotas.size());
  std::vector<std::pair<uint64_t, size_t>> remainders;
  uint64_t left = whole;
  for (size_t i = 0; i < quotas.size(); ++i) {
    MUSTER_CHECK(quotas[i] < uint64_t{1} << 31);
    // Without any quota, all are equal.
    const uint64_t quota = total == 0 ? 1 : quotas[i];
    const uint64_t sum = total == 0 ? quotas.size() : total;
    parts[i] = static_cast<uint32_t>(whole * quota / sum);
    remainders.emplace_back(whole * quota % sum, i);
    left -= parts[i];
  }
  std::ranges::sort(remainders, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  MUSTER_CHECK(left <= remainders.size());
  for (size_t i = 0; i < left; ++i) ++parts[remainders[i].second];
  return parts;
}

/// Sorts, and joins what touches.
void Normalise(ShareRanges* ranges) {
  std::ranges::sort(*ranges, {}, &ShareRange::first);
  ShareRanges joined;
  for (const ShareRange& range : *ranges) {
    if (range.count == 0) continue;
    if (!joined.empty() && joined.back().first + joined.back().count == range.first) {
      joined.back().count += range.count;
    } else {
      joined.push_back(range);
    }
  }
  *ranges = std::move(joined);
}

}  // namespace

uint64_t CountOf(const ShareRanges& ranges) {
  uint64_t count = 0;
  for (const ShareRange& range : ranges) count += range.count;
  return count;
}

std::vector<uint64_t> Quotas(std::span<const uint64_t> minibatch_us) {
  uint64_t least = 0, most = 0, sum = 0, known = 0;
  for (const uint64_t us : minibatch_us) {
    if (us == 0) continue;
    least = known == 0 ? us : std::min(least, us);
    most = std::max(most, us);
    // Times come from the network: no sum of them runs over.
    sum += std::min(us, uint64_t{1} << 40);
    ++known;
  }
  std::vector<uint64_t> quotas(minibatch_us.size(), kAverage);
  if (known == 0 || most - least <= least / 4) return quotas;
  const uint64_t mean = sum / known;
  uint64_t largest = 0;
  for (size_t i = 0; i < quotas.size(); ++i) {
    const uint64_t us = minibatch_us[i] == 0 ? mean : minibatch_us[i];
    quotas[i] = std::clamp<uint64_t>(kAverage * mean / us, 1, kAverage * kFactorMax);
    largest = std::max(largest, quotas[i]);
  }
  for (uint64_t& quota : quotas) {
    quota = std::max(quota, (largest + kFactorMax - 1) / kFactorMax);
  }
  return quotas;
}

std::vector<ShareRanges> FreshShares(uint32_t minibatches, std::span<const uint64_t> quotas) {
  std::vector<ShareRanges> shares;
  uint32_t first = 0;
  for (const uint32_t part : Divide(minibatches, quotas)) {
    shares.emplace_back();
    if (part > 0) shares.back().push_back({first, part});
    first += part;
  }
  return shares;
}

std::vector<ShareRanges> SharesAfterLoss(std::vector<ShareRanges> kept, const ShareRanges& gone,
                                         std::span<const uint64_t> quotas) {
  MUSTER_CHECK(kept.size() == quotas.size());
  const std::vector<uint32_t> parts = Divide(static_cast<uint32_t>(CountOf(gone)), quotas);
  size_t range = 0;
  uint32_t used = 0;  // of that range
  for (size_t i = 0; i < kept.size(); ++i) {
    for (uint32_t left = parts[i]; left > 0;) {
      const uint32_t taken = std::min(left, gone[range].count - used);
      kept[i].push_back({gone[range].first + used, taken});
      left -= taken;
      used += taken;
      if (used < gone[range].count) continue;
      ++range;
      used = 0;
    }
    Normalise(&kept[i]);
  }
  return kept;
}

}  // namespace muster
