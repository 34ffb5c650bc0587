#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/metrics/event_file.h"
#include "proto/status/job_status.h"

/// What TensorBoard shows of a job, and which of it a file lacks. Pure.
namespace muster::metrics {

/// The tag of the training rate; its steps are records trained.
inline constexpr char kRateTag[] = "rates/records_per_second";

/// The points of each dataset, by its name.
using PointsOfDatasets = std::map<std::string, std::vector<Point>>;

/// Every metric of every listed epoch of which all records are committed, in the order of epochs. A
/// metric's name is the tag, and the number of the epoch, from 1, is the step. Values that are not
/// defined are left out. The time of a point is that of the master's event about the epoch; if the
/// event is no longer kept, it is `now`.
PointsOfDatasets EpochPoints(const JobStatus& status, const std::vector<MasterEvent>& events,
                             WallTime now);

/// The training rate from readings of the records trained. A value.
class RateSampler {
 public:
  /// `records_trained` counts from the start of a scaler: a count that fell is that of another one,
  /// and goes on from where the last one ended. `begins_run`: the first reading of a run.
  void Add(WallTime wall, uint64_t records_trained, bool begins_run);
  /// One for at least 10 s each, none from one scaler to the next. Their steps never fall.
  const std::vector<Point>& points() const { return points_; }

  static constexpr WallTime kWindow{10'000'000};
  /// Two readings with more between them do not say when the records were trained.
  static constexpr WallTime kGap{60'000'000};

 private:
  struct Reading {
    WallTime wall;
    uint64_t records = 0;
  };
  std::optional<Reading> window_;  // its first reading
  WallTime newest_{0};
  uint64_t counted_ = 0;  // by the scaler of the newest reading
  uint64_t before_ = 0;   // by all scalers before it
  std::vector<Point> points_;
};

/// Those of `points` that `file` lacks: a metric of an epoch if the file has no point of this tag
/// and step, a rate if it is newer than all rates of the file.
std::vector<Point> Missing(const std::vector<Point>& points, const EventFile& file);

}  // namespace muster::metrics
