#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/failpoint_config.h"
#include "base/words/limits.h"
#include "job/job_spec.h"
#include "master/group_core/group_options.h"
#include "proto/status/metric_trend.h"
#include "sharding/stream/stream_cutter.h"

namespace muster {

/// When a step happens: `now` decides, `wall` is only shown to people.
struct StepTime {
  TimePoint now;
  WallTime wall{0};
};

/// What the core must know of a dataset that is a topic.
struct StreamPlan {
  std::string topic;
  StreamCutOptions cut;
  /// No more ranges are cut while this many ranges wait or are leased.
  uint64_t open_ranges_max = 1'024;
};

/// What is in a shard.
struct ShardSize {
  uint32_t records = 0;
  uint32_t minibatches = 0;
};

/// What the core must know of one dataset.
struct DatasetPlan {
  std::string name;
  DatasetMode mode = DatasetMode::kTrain;
  uint32_t epochs = 1;   // train only
  uint64_t shards = 0;   // per epoch
  uint64_t records = 0;  // per epoch
  uint32_t minibatch_size = 1;
  /// A pure function, called for valid shards only; not of a stream.
  std::function<ShardSize(EpochIndex, ShardIndex)> size_of;
  double pace = 1;  // DatasetMix; of a train dataset
  /// Shards come while the topic grows; `shards` and `records` are 0, `epochs` is 1.
  std::optional<StreamPlan> stream;
};

/// A metric of an evaluate dataset that decides something.
struct DecidingMetric {
  DatasetId dataset;
  std::string name;
  Better better = Better::kHigher;
};

/// What happens at the end of an epoch: which weights are kept, and whether it is the last one.
struct EpochEndOptions {
  std::optional<DecidingMetric> keep_best;
  /// Keeps every Nth epoch, the newest `keep_last` of them; 0: none.
  uint32_t keep_every = 0;
  uint32_t keep_last = 5;
  struct StopEarly {
    DecidingMetric metric;
    /// The job ends after this many evaluations in a row that were not better than the best before
    /// them by more than `min_delta`.
    uint32_t patience = 3;
    double min_delta = 0;
  };
  std::optional<StopEarly> stop_early;
  bool keeps() const { return keep_best.has_value() || keep_every > 0; }
  /// Whether an epoch begins only when the one before has ended.
  bool any() const { return keeps() || stop_early.has_value(); }
};

/// Rules that tests of real processes and tests/sim can remove, to show that their checks can fail.
/// A release build does not have them, as it has no failpoints. tests/sim has many more
/// (tests/sim/planted).
struct PlantedBugs {
  /// Nothing is verified after a restore: a done under an old restore epoch is accepted, and
  /// workers are not told which partitions were restored.
#if MUSTER_WITH_FAILPOINTS || defined(MUSTER_PLANTED_BUGS)
  bool no_reverify = false;
#else
  static constexpr bool no_reverify = false;
#endif
};

/// Limits on what the core keeps, whatever workers, servers and operators do.
struct CoreLimits {
  /// The newest leases that ended: a crash that is reported later than this many is charged to no
  /// shard.
  size_t ended_leases = 10'000;
  /// The most nodes known by name; new ones replace those that ended longest ago. As many as can
  /// live at a time, including master and scaler, and some that were named by hand.
  size_t nodes = kWorkersMax + kServerReplicasMax + 100;
  /// Most shards that become COMMITTED in one step, because all other steps wait meanwhile. The
  /// next tick continues.
  size_t commits_at_once = 16'384;
  /// Memory for DONE shards with their metrics. At this limit nothing is granted until snapshots
  /// have made some of them COMMITTED; leased shards may still be reported done.
  uint64_t done_bytes = uint64_t{1} << 30;
  /// Memory for FAILED shards and the reasons of failures. At this limit nothing is granted, and
  /// the job ends as FAILED when no shard is in progress any more.
  uint64_t failure_bytes = uint64_t{128} << 20;
  /// Names of metrics of one epoch of a dataset; others are not merged.
  size_t metric_names = 1'024;
  /// Epochs of a dataset that have metrics of their own. With more, older ones are thinned out
  /// (epochs/epoch_totals.h). Not 0.
  size_t epochs_known = 1'000;
};

struct CoreOptions {
  std::vector<DatasetPlan> datasets;
  uint32_t partitions = 1;
  /// Server slots: ps-0 .. ps-(n-1).
  uint32_t servers = 1;
  /// So many of the servers, those with the highest numbers, run on other machines.
  uint32_t servers_joined = 0;
  /// The supervisor's run. Another one than the journal's means that every process of older runs
  /// is dead.
  std::string run_id;
  /// Journaled, for questions when no master runs.
  std::string snapshot_directory;
  /// FAILED shards become TODO at the start.
  bool retry_failed = false;
  std::chrono::milliseconds snapshot_interval{10'000};
  /// A snapshot that was requested but not reported is requested again, with a newer cut.
  std::chrono::milliseconds snapshot_timeout{30'000};
  /// The job fails if a server makes no progress with restoring its partitions for this long.
  std::chrono::milliseconds restore_timeout{120'000};
  JobSpec::Leases leases;
  JobSpec::Servers server_times;
  std::chrono::milliseconds drain_timeout{30'000};
  /// The job fails when more records than this were rejected.
  uint64_t rejected_records_max = 0;
  /// With more FAILED shards, no more are granted, and the job ends as FAILED. Those whose data are
  /// gone do not count.
  uint64_t failed_shards_max = UINT64_MAX;
  EpochEndOptions epoch_ends;
  Evaluation evaluation = Evaluation::kAtTheEnd;
  CoreLimits limits;
  /// The workers train synchronously, and nothing is leased to one of them.
  std::optional<GroupOptions> group;
  PlantedBugs planted_bugs;

  /// The group's steps push to tables on servers.
  bool GroupHasTables() const { return group.has_value() && servers > 0; }
};

}  // namespace muster
