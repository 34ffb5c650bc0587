#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/words/types.h"
#include "proto/messages/metrics.h"

namespace muster {

/// The metrics of shards that were DONE and run again, because servers were restored. The next run
/// judges weights that have partly seen its records, so the metrics of the first run count.
///
/// In memory only, up to a limit. If some are lost, users can see it: a worker that pushes a
/// minibatch although a partition has it counts this in ShardMetrics::minibatches_again. Pure; not
/// thread-safe.
class FirstMetrics {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;
  explicit FirstMetrics(uint64_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  /// The shard runs again.
  void Keep(const ShardId& shard, const ShardMetrics& metrics);
  /// The metrics that count for a shard that is DONE: those that were kept, or else these.
  ShardMetrics Take(const ShardId& shard, const ShardMetrics& metrics);
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  absl::flat_hash_map<ShardId, std::string> packed_;
};

}  // namespace muster
