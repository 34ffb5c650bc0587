#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/failpoint_config.h"
#include "sharding/job_spec.h"
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
  /// No more ranges are cut while this many wait or are leased.
  uint64_t open_ranges_max = 1'024;
};

/// What the core must know of one dataset.
struct DatasetPlan {
  std::string name;
  DatasetMode mode = DatasetMode::kTrain;
  uint32_t epochs = 1;   // train only
  uint64_t shards = 0;   // per epoch
  uint64_t records = 0;  // per epoch
  uint32_t minibatch_size = 1;
  /// Records of a shard. A pure function, called for valid shards only; not of a stream.
  std::function<uint32_t(EpochIndex, ShardIndex)> records_of;
  /// Shards come while the topic grows; `shards` and `records` are 0, `epochs` is 1.
  std::optional<StreamPlan> stream;
};

/// Rules that tests of real processes take out, to show that the checks can fail. Like failpoints,
/// in no release build: there nothing can set them, and nothing is left of them. tests/sim has
/// many more (base/planted_bug.h).
struct PlantedBugs {
  /// A done under an old restore epoch is accepted.
#if MUSTER_WITH_FAILPOINTS
  bool no_reverify = false;
#else
  static constexpr bool no_reverify = false;
#endif
};

struct CoreOptions {
  std::vector<DatasetPlan> datasets;
  uint32_t partitions = 1;
  /// Server slots: ps-0 .. ps-(n-1).
  uint32_t servers = 1;
  /// The supervisor's run. Another one than the journal's means that every process of older runs
  /// is dead.
  std::string run_id;
  /// Journaled, for those who ask when no master runs.
  std::string snapshot_directory;
  /// FAILED shards become TODO at the start.
  bool retry_failed = false;
  std::chrono::milliseconds snapshot_interval{10'000};
  /// A snapshot that was asked for and not reported is asked for anew, with a newer cut.
  std::chrono::milliseconds snapshot_timeout{30'000};
  JobSpec::Leases leases;
  JobSpec::Servers server_times;
  std::chrono::milliseconds drain_timeout{30'000};
  /// The job fails when more records than this were rejected.
  uint64_t rejected_records_max = 0;
  PlantedBugs planted_bugs;
};

}  // namespace muster
