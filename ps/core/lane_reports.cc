#include "ps/core/lane_reports.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::ps {

std::vector<size_t> LaneReports::Begin(TimePoint now) {
  began_ = now;
  std::vector<size_t> ask;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].asked_at.has_value()) continue;
    lanes_[i].asked_at = now;
    ask.push_back(i);
  }
  return ask;
}

bool LaneReports::Answered(size_t lane, LaneReport report) {
  MUSTER_CHECK(lanes_[lane].asked_at.has_value());
  MUSTER_CHECK(report.sequence >= lanes_[lane].report.sequence);
  const bool late = lanes_[lane].late;
  lanes_[lane] = {.report = std::move(report)};
  return late;
}

std::chrono::nanoseconds LaneReports::Wait(TimePoint now, Hanging hanging) const {
  bool all = true, hangs = false;
  for (const Lane& lane : lanes_) {
    if (!lane.asked_at.has_value()) continue;
    all = false;
    hangs |= now - *lane.asked_at >= options_.silence_max;
  }
  if (all) return {};
  if (hangs && hanging == Hanging::kAreAwaited) return options_.patience;
  return std::max<std::chrono::nanoseconds>(began_ + options_.patience - now, {});
}

std::vector<LaneReport> LaneReports::Take() {
  std::vector<LaneReport> reports;
  for (Lane& lane : lanes_) {
    lane.late = lane.asked_at.has_value();
    reports.push_back(lane.report);
  }
  return reports;
}

}  // namespace muster::ps
