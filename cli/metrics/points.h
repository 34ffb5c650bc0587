#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/metrics/event_file.h"
#include "proto/status/job_status.h"

/// Which points of a job TensorBoard shows, and which of them a file lacks. Pure.
namespace muster::metrics {

/// The tag of the training rate. Its steps are numbers of records trained.
inline constexpr char kRateTag[] = "rates/records_per_second";

/// The points of each dataset, by its name.
using PointsOfDatasets = std::map<std::string, std::vector<Point>>;

/// Every metric of every listed epoch of which all records are committed, in the order of epochs.
/// The tag is the metric's name, and the step is the number of the epoch, from 1. Undefined values
/// are left out. The time of a point is that of the master's event about the epoch. If that event
/// is not kept any more, it is `now`.
PointsOfDatasets EpochPoints(const JobStatus& status, const std::vector<MasterEvent>& events,
                             WallTime now);

/// Computes the training rate from readings of the number of records trained. A value.
class RateSampler {
 public:
  /// `records_trained` counts from the start of a scaler. If it fell, another scaler counts, and
  /// its count continues where the last one ended. `begins_run` says that this is the first reading
  /// of a run.
  void Add(WallTime wall, uint64_t records_trained, bool begins_run);
  /// Each point stands for at least 10 s. None spans two scalers. Steps never fall.
  const std::vector<Point>& points() const { return points_; }

  static constexpr WallTime kWindow{10'000'000};
  /// If two readings are further apart than this, they do not show when the records were trained.
  static constexpr WallTime kGap{60'000'000};

 private:
  struct Reading {
    WallTime wall;
    uint64_t records = 0;
  };
  std::optional<Reading> window_;  // the first reading of the present point
  WallTime newest_{0};
  uint64_t counted_ = 0;  // records that the newest reading's scaler has counted
  uint64_t before_ = 0;   // records that all earlier scalers have counted
  std::vector<Point> points_;
};

/// Those of `points` that `file` lacks. A metric is missing if the file has no point with its tag
/// and step. A rate is missing if it is newer than all rates of the file.
std::vector<Point> Missing(const std::vector<Point>& points, const EventFile& file);

}  // namespace muster::metrics
