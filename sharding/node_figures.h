#pragma once

#include <cstddef>
#include <cstdint>

#include "sharding/delay_histogram.h"
#include "sharding/types.h"

/// What workers and servers count of themselves and of each other: running totals of one process.
/// proto/control.proto says what exactly each of them counts; messages of sharding/control.h carry
/// them.
namespace muster {

/// Where a worker's time went since its process began, and what it did: running totals.
/// proto/control.proto says what exactly each of them counts.
struct WorkerTimes {
  uint64_t total_us = 0;
  uint64_t wait_shard_us = 0;
  uint64_t wait_pull_us = 0;
  uint64_t wait_push_us = 0;
  uint64_t compute_us = 0;
  uint64_t minibatches_begun = 0;
  uint64_t minibatches_finished = 0;
  uint64_t records_trained = 0;
  uint64_t records_evaluated = 0;
  friend bool operator==(const WorkerTimes&, const WorkerTimes&) = default;
};

/// What a worker process saw of a server process: answered requests and the sums of their round
/// trips.
struct PeerTimes {
  ServerId server;
  ServerIncarnation incarnation;
  uint64_t pulls = 0;
  uint64_t pull_us = 0;
  uint64_t pushes = 0;
  uint64_t push_us = 0;
  friend bool operator==(const PeerTimes&, const PeerTimes&) = default;
};
/// PeerTimes in one call, at most.
inline constexpr size_t kPeersPerCallMax = 1'024;

/// How long records of a topic took, from their timestamps until every server had applied their
/// minibatch: running totals of a worker process; a record that is run again counts again.
struct DatasetDelays {
  DatasetId dataset;
  DelayHistogram delays;
  friend bool operator==(const DatasetDelays&, const DatasetDelays&) = default;
};
/// DatasetDelays in one call, at most.
inline constexpr size_t kDelaysPerCallMax = 1'024;

/// Counters of one server process since its start.
struct ServerCounters {
  uint64_t pulls = 0;
  uint64_t pulled_rows = 0;
  uint64_t parts_applied = 0;
  uint64_t parts_skipped = 0;  // answered OK from the window
  uint64_t parts_stale = 0;
  uint64_t parts_wrong_owner = 0;
  uint64_t rows = 0;
  uint64_t row_bytes = 0;
  uint64_t snapshots = 0;
  uint64_t snapshot_bytes = 0;
  uint64_t partitions_restored = 0;
  uint64_t pushes = 0;
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
  /// Between having a request and having its answer encoded, summed over lanes.
  uint64_t service_us = 0;
};
/// One partition as its server sees it: running totals of the server process, but for the last two.
struct PartitionTraffic {
  PartitionId partition;
  uint64_t pulls = 0;
  uint64_t pushes = 0;
  uint64_t moved_rows = 0;
  uint64_t moved_bytes = 0;
  uint64_t service_us = 0;
  uint64_t rows = 0;
  uint64_t row_bytes = 0;
  friend bool operator==(const PartitionTraffic&, const PartitionTraffic&) = default;
};
/// PartitionTraffic in one call, at most.
inline constexpr size_t kTrafficPerCallMax = 4'096;

}  // namespace muster
