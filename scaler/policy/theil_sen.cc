#include "scaler/policy/theil_sen.h"

#include <cmath>
#include <vector>

#include "scaler/model/sample_span.h"

namespace muster::scaler {
namespace {

constexpr size_t kPointsMax = 128;
/// The factor from the median absolute deviation to the standard deviation of a normal
/// distribution.
constexpr double kMadToDeviation = 1.4826;

std::vector<Point> Thinned(std::span<const Point> points) {
  if (points.size() <= kPointsMax) return {points.begin(), points.end()};
  std::vector<Point> kept;
  kept.reserve(kPointsMax);
  for (size_t i = 0; i < kPointsMax; ++i) {
    kept.push_back(points[i * (points.size() - 1) / (kPointsMax - 1)]);
  }
  return kept;
}

}  // namespace

RobustLine FitTheilSen(std::span<const Point> points) {
  const std::vector<Point> kept = Thinned(points);
  std::vector<double> slopes;
  slopes.reserve(kept.size() * (kept.size() - 1) / 2);
  double rising = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    for (size_t j = i + 1; j < kept.size(); ++j) {
      if (kept[i].x == kept[j].x) continue;
      const double slope = (kept[j].y - kept[i].y) / (kept[j].x - kept[i].x);
      rising += slope > 0 ? 1 : slope < 0 ? -1 : 0;
      slopes.push_back(slope);
    }
  }
  RobustLine line;
  if (points.empty()) return line;
  if (slopes.empty()) slopes.push_back(0);
  line.concordance = rising / static_cast<double>(slopes.size());
  line.slope = Median(std::move(slopes));
  std::vector<double> values;
  values.reserve(kept.size());
  for (const Point& point : kept) values.push_back(point.y - line.slope * point.x);
  line.intercept = Median(values);
  for (double& value : values) value = std::abs(value - line.intercept);
  line.noise = kMadToDeviation * Median(std::move(values));
  return line;
}

}  // namespace muster::scaler
