#include "cli/metrics/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "proto/status/epoch_words.h"

namespace muster::metrics {
namespace {

double SecondsOf(WallTime wall) {
  return static_cast<double>(wall.count()) / 1e6;
}

/// True if the epoch is final: a value that was shown once must not change, so no shard may be
/// retried.
bool IsCommitted(const EpochStatus& epoch) {
  return epoch.shards.total > 0 && epoch.shards.committed == epoch.shards.total;
}

/// When epochs were committed: those up to `last`.
struct CommitTime {
  uint32_t last = 0;
  WallTime wall{0};
};
/// By dataset and the first of the epochs.
using CommitTimes = std::map<std::string, std::map<uint32_t, CommitTime>>;

CommitTimes CommitTimesIn(const std::vector<MasterEvent>& events) {
  CommitTimes times;
  for (const MasterEvent& event : events) {
    if (event.kind != kEpochCommittedKind) continue;
    const std::optional<EpochRange> epochs = EpochsNamedIn(event.text);
    if (!epochs.has_value()) continue;
    times[epochs->dataset][epochs->first] = {epochs->last, WallTime(event.wall_us)};
  }
  return times;
}

std::optional<WallTime> TimeOf(const CommitTimes& times, const std::string& dataset,
                               uint32_t epoch) {
  const auto of = times.find(dataset);
  if (of == times.end()) return std::nullopt;
  const auto next = of->second.upper_bound(epoch);
  if (next == of->second.begin()) return std::nullopt;
  const CommitTime& before = std::prev(next)->second;
  return before.last < epoch ? std::nullopt : std::optional(before.wall);
}

}  // namespace

PointsOfDatasets EpochPoints(const JobStatus& status, const std::vector<MasterEvent>& events,
                             WallTime now) {
  const CommitTimes times = CommitTimesIn(events);
  PointsOfDatasets all;
  for (const DatasetStatus& dataset : status.datasets) {
    // An open topic has one epoch, which is not over even if all known shards are committed.
    if (dataset.stream && dataset.stream->open) continue;
    for (const EpochStatus& epoch : dataset.epochs) {
      if (!IsCommitted(epoch)) continue;
      const WallTime wall = TimeOf(times, dataset.name, epoch.epoch).value_or(now);
      for (const auto& [metric, value] : epoch.metrics) {
        if (!std::isfinite(value)) continue;
        all[dataset.name].push_back({.tag = metric,
                                     .step = uint64_t{epoch.epoch} + 1,
                                     .wall_seconds = SecondsOf(wall),
                                     .value = value});
      }
    }
  }
  return all;
}

void RateSampler::Add(WallTime wall, uint64_t records_trained, bool begins_run) {
  const bool another = begins_run || records_trained < counted_;
  if (another) before_ += counted_;
  counted_ = records_trained;
  const Reading reading{.wall = wall, .records = before_ + records_trained};
  const bool gap = wall < newest_ || wall - newest_ > kGap;
  newest_ = wall;
  if (!window_ || another || gap) {
    window_ = reading;
    return;
  }
  if (wall - window_->wall < kWindow) return;
  const uint64_t trained = reading.records - window_->records;
  points_.push_back({.tag = kRateTag,
                     .step = reading.records,
                     .wall_seconds = SecondsOf(wall),
                     .value = static_cast<double>(trained) / SecondsOf(wall - window_->wall)});
  window_ = reading;
}

std::vector<Point> Missing(const std::vector<Point>& points, const EventFile& file) {
  std::set<std::pair<std::string, uint64_t>> there;
  double newest_rate = 0;
  for (const Point& point : file.points) {
    if (point.tag == kRateTag) {
      newest_rate = std::max(newest_rate, point.wall_seconds);
    } else {
      there.emplace(point.tag, point.step);
    }
  }
  std::vector<Point> missing;
  for (const Point& point : points) {
    const bool known = point.tag == kRateTag ? point.wall_seconds <= newest_rate
                                             : !there.emplace(point.tag, point.step).second;
    if (!known) missing.push_back(point);
  }
  return missing;
}

}  // namespace muster::metrics
