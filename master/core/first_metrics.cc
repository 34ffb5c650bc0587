#include "master/core/first_metrics.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"

namespace muster {
namespace {

/// A shard that only counts its records says the same in every run.
bool IsJudgement(const ShardMetrics& metrics) {
  return !metrics.means.empty() || !metrics.aucs.empty();
}

uint64_t BytesOf(const std::string& packed) {
  return 2 * (sizeof(ShardId) + sizeof(packed)) + packed.size();
}

}  // namespace

void FirstMetrics::Keep(const ShardId& shard, const ShardMetrics& metrics) {
  if (!IsJudgement(metrics)) return;
  std::string packed = fields::Encode(metrics, fields::Side::kOwnDisk);
  if (bytes_ + BytesOf(packed) > bytes_max_) return;
  bytes_ += BytesOf(packed);
  MUSTER_CHECK_MSG(packed_.emplace(shard, std::move(packed)).second, ToString(shard));
}

ShardMetrics FirstMetrics::Take(const ShardId& shard, const ShardMetrics& metrics) {
  const auto found = packed_.find(shard);
  if (found == packed_.end()) return metrics;
  auto first = fields::Decode<ShardMetrics>(found->second, fields::Side::kOwnDisk);
  MUSTER_CHECK_MSG(first.ok(), first.status().ToString());
  MUSTER_CHECK(bytes_ >= BytesOf(found->second));
  bytes_ -= BytesOf(found->second);
  packed_.erase(found);
  return *std::move(first);
}

}  // namespace muster
