#pragma once

#include <cstddef>
#include <cstdint>

#include "base/delay_histogram.h"
#include "base/usage/process_usage.h"
#include "base/words/types.h"

/// What workers and servers count of themselves and of each other: running totals of one process.
/// proto/control.proto says what exactly each of them counts; messages of proto/messages/control.h
/// carry them.
namespace muster {

/// Where a worker's time went since its process began, and what it did: running totals.
/// proto/control.proto says what exactly each of them counts.
struct WorkerTimes {
  static constexpr const char* kName = "WorkerTimes";
  uint64_t total_us = 0;
  uint64_t wait_shard_us = 0;
  uint64_t wait_pull_us = 0;
  uint64_t wait_push_us = 0;
  uint64_t compute_us = 0;
  uint64_t minibatches_begun = 0;
  uint64_t minibatches_finished = 0;
  uint64_t records_trained = 0;
  uint64_t records_evaluated = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "total_us", s.total_us, {"Since the process began, by the clock"});
    f(2, "wait_shard_us", s.wait_shard_us, {"Loops of a worker add up, here and below"});
    f(3, "wait_pull_us", s.wait_pull_us);
    f(4, "wait_push_us", s.wait_push_us);
    f(5, "compute_us", s.compute_us, {"In a shard's loop, without its waits"});
    f(6, "minibatches_begun", s.minibatches_begun);
    f(7, "minibatches_finished", s.minibatches_finished);
    f(8, "records_trained", s.records_trained);
    f(9, "records_evaluated", s.records_evaluated);
  }
  friend bool operator==(const WorkerTimes&, const WorkerTimes&) = default;
};

/// A worker process's figures of a server process: answered requests and the sums of their round
/// trips.
struct PeerTimes {
  static constexpr const char* kName = "PeerTimes";
  ServerId server;
  ServerIncarnation incarnation;
  uint64_t pulls = 0;
  uint64_t pull_us = 0;
  uint64_t pushes = 0;
  uint64_t push_us = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "server", s.server);
    f(2, "incarnation", s.incarnation);
    f(3, "pulls", s.pulls);
    f(4, "pull_us", s.pull_us);
    f(5, "pushes", s.pushes);
    f(6, "push_us", s.push_us);
  }
  friend bool operator==(const PeerTimes&, const PeerTimes&) = default;
};
/// PeerTimes in one call, at most.
inline constexpr size_t kPeersPerCallMax = 1'024;

/// How long records of a topic took, from their timestamps until every server had applied their
/// minibatch: running totals of a worker process; a record that is run again counts again.
struct DatasetDelays {
  DatasetId dataset;
  DelayHistogram delays;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset", s.dataset);
    DelayHistogram::Fields(f, s.delays);  // in the same message
  }
  friend bool operator==(const DatasetDelays&, const DatasetDelays&) = default;
};
/// DatasetDelays in one call, at most.
inline constexpr size_t kDelaysPerCallMax = 1'024;

/// Counters of one server process since its start.
struct ServerCounters {
  static constexpr const char* kName = "ServerCounters";
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
  /// The time from a complete request to its encoded answer, summed over lanes.
  uint64_t service_us = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "pulls", s.pulls);
    f(2, "pulled_rows", s.pulled_rows);
    f(3, "parts_applied", s.parts_applied);
    f(4, "parts_skipped", s.parts_skipped, {"They were in already"});
    f(5, "parts_stale", s.parts_stale);
    f(6, "parts_wrong_owner", s.parts_wrong_owner);
    f(7, "rows", s.rows, {.says = "Now", .gauge = true});
    f(8, "row_bytes", s.row_bytes, {.says = "Now, of memory", .gauge = true});
    f(9, "snapshots", s.snapshots, {"Files written"});
    f(10, "snapshot_bytes", s.snapshot_bytes, {"Of those files"});
    f(11, "partitions_restored", s.partitions_restored);
    f(12, "pushes", s.pushes);
    f(13, "received_bytes", s.received_bytes);
    f(14, "sent_bytes", s.sent_bytes);
    f(15, "service_us", s.service_us,
      {"From having a request to having its answer encoded, summed over lanes"});
  }
};
/// One partition as its server sees it: running totals of the server process, but for the last two.
struct PartitionTraffic {
  static constexpr const char* kName = "PartitionTraffic";
  PartitionId partition;
  uint64_t pulls = 0;
  uint64_t pushes = 0;
  uint64_t moved_rows = 0;
  uint64_t moved_bytes = 0;
  uint64_t service_us = 0;
  uint64_t rows = 0;
  uint64_t row_bytes = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition);
    f(2, "pulls", s.pulls);
    f(3, "pushes", s.pushes);
    f(4, "moved_rows", s.moved_rows);
    f(5, "moved_bytes", s.moved_bytes);
    f(6, "service_us", s.service_us);
    f(7, "rows", s.rows, {.says = "Now", .gauge = true});
    f(8, "row_bytes", s.row_bytes, {.says = "Now, of memory", .gauge = true});
  }
  friend bool operator==(const PartitionTraffic&, const PartitionTraffic&) = default;
};
/// PartitionTraffic in one call, at most.
inline constexpr size_t kTrafficPerCallMax = 4'096;

}  // namespace muster
