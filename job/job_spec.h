#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words/types.h"
#include "job/policy_options.h"
#include "job/source_spec.h"

namespace muster {

struct DatasetSpec {
  std::string name;
  DatasetMode mode = DatasetMode::kTrain;
  /// Where its records come from.
  SourceSpec source;
  uint32_t epochs = 1;  // train only
  uint32_t minibatch_size = 256;
  uint32_t minibatches_per_shard = 16;
  bool shuffle = false;
};

struct ResourceSpec {
  std::optional<double> cpu;  // cores
  std::optional<uint64_t> memory_bytes;
};

struct ReplicaSpec {
  uint32_t replicas = 1;
  /// Worker only: how many policies may make of them; absent: `replicas`.
  std::optional<uint32_t> replicas_min;
  std::optional<uint32_t> replicas_max;
  std::vector<std::string> command;  // worker only
  std::map<std::string, std::string> env;
  ResourceSpec requests;
  ResourceSpec limits;  // of one process, at its first start
  ResourceSpec max;     // that policies may make of the limits
};

/// What the scaler is told.
struct ScalerSpec {
  uint32_t port = 0;  // of REST; 0 = a free one of loopback
  bool dry_run = false;
  std::vector<std::string> paused_policies;
  std::chrono::seconds cooldown{60};
  uint32_t interventions_per_hour = 12;
  /// Some of it, by thresholds.h; the rest is as it is.
  PolicyOptions policies;
};

/// A training job as the job file describes it: defaults filled in, bounds checked, paths absolute.
/// A value. docs/job-file.md lists every field with default, bound and whether it may change on
/// resume.
struct JobSpec {
  std::string name;
  uint64_t seed = 0;
  uint32_t partitions = 256;
  std::string state_directory;
  std::string snapshot_directory;
  std::chrono::milliseconds snapshot_interval{10'000};
  std::chrono::milliseconds restore_timeout{120'000};
  std::vector<DatasetSpec> datasets;
  ReplicaSpec ps;
  ReplicaSpec worker;
  ResourceSpec budget;  // of all workers and servers together; absent: the machine
  ScalerSpec scaler;

  /// "127.0.0.1:0" = a free loopback port, chosen once per run.
  std::string master_address = "127.0.0.1:0";

  struct Leases {
    std::chrono::milliseconds duration{10'000};     // without a heartbeat
    std::chrono::milliseconds max_age{600'000};     // heartbeats, but no progress
    std::chrono::milliseconds grace_period{3'000};  // after a master restart
    std::chrono::milliseconds heartbeat_interval{500};
    uint32_t failures_max = 3;  // of the trainer, until a shard is FAILED
  } leases;

  struct Servers {
    std::chrono::milliseconds timeout{10'000};  // without a heartbeat, until declared dead
    std::chrono::milliseconds heartbeat_interval{200};
    uint32_t threads = 1;  // lanes per server
  } servers;

  struct Training {
    uint32_t unacknowledged_minibatches_max = 4;  // the staleness bound of Commit
    uint32_t prefetch_minibatches = 2;            // how far ahead `prepare` is called
    uint32_t shards_ahead = 2;
    std::string wire_encoding = "float32";  // or float16, bfloat16
    uint64_t rejected_records_max = 0;      // the job fails beyond
    /// Metrics as the file writes them: metric_choice.h; empty: none.
    std::string keep_best;
    uint32_t keep_every = 0;  // 0: no epoch for its number
    uint32_t keep_last = 5;
    std::string stop_early_metric;
    uint32_t stop_early_patience = 3;
    double stop_early_min_delta = 0;
  } training;

  struct Restarts {
    uint32_t crash_loop_exits = 5;  // exits of one node without progress in between
    std::chrono::milliseconds backoff_initial{500};
    std::chrono::milliseconds backoff_max{30'000};
  } restarts;

  std::chrono::milliseconds drain_timeout{30'000};
};

/// The consumer group to which a job tells how far it is in its topics: "muster.<job>".
std::string GroupOf(const JobSpec& spec);

/// The fields that may not change on resume, each with its value as text, in a fixed order.
std::vector<std::pair<std::string, std::string>> FixedFields(const JobSpec& spec);

}  // namespace muster
