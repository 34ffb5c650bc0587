#include "scaler/sensor/figure_rings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace muster::scaler {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

}  // namespace

void FigureRings::Ring::Add(uint64_t wall_us,
                            const std::map<Key, std::pair<const char*, double>>& values) {
  times.push_back(wall_us);
  for (const auto& [key, value] : values) {
    const auto found = columns.find(key);
    if (found != columns.end()) continue;
    if (columns.size() >= kSeriesMax || std::isnan(value.second)) continue;
    columns[key] = {.unit = value.first, .values = std::deque<float>(times.size() - 1, kUnknown)};
  }
  for (auto& [key, column] : columns) {
    const auto value = values.find(key);
    column.values.push_back(value == values.end() ? kUnknown
                                                  : static_cast<float>(value->second.second));
  }
  if (times.size() <= capacity) return;
  times.pop_front();
  for (auto entry = columns.begin(); entry != columns.end();) {
    std::deque<float>& column = entry->second.values;
    column.pop_front();
    // A column of a node that is gone has no known value. All of it is looked through only if its
    // newest value is unknown.
    const bool gone =
        std::isnan(column.back()) &&
        std::all_of(column.begin(), column.end(), [](float v) { return std::isnan(v); });
    entry = gone ? columns.erase(entry) : std::next(entry);
  }
}

void FigureRings::Add(uint64_t wall_us, const std::vector<Figure>& figures) {
  std::map<Key, std::pair<const char*, double>> values;
  for (const Figure& figure : figures) {
    const Key key(figure.node, figure.name);
    values[key] = {figure.unit, figure.value};
    if (std::isnan(figure.value)) continue;
    Sum& sum = sums_[key];
    sum.unit = figure.unit;
    sum.sum += figure.value;
    ++sum.count;
  }
  fine_.Add(wall_us, values);
  if (++summed_ < kPerCoarse) return;
  std::map<Key, std::pair<const char*, double>> means;
  for (const auto& [key, sum] : sums_) means[key] = {sum.unit, sum.sum / sum.count};
  coarse_.Add(wall_us, means);
  sums_.clear();
  summed_ = 0;
}

rest::Samples FigureRings::Since(const std::string& node, uint64_t after_wall_us,
                                 double window_s) const {
  const Ring& ring = window_s <= static_cast<double>(kFine) ? fine_ : coarse_;
  rest::Samples samples;
  if (ring.times.empty()) return samples;
  const double back = std::clamp(window_s, 0.0, 1e9) * 1e6;
  const uint64_t newest = ring.times.back();
  // A value stands for the time that ends at its own.
  const uint64_t oldest =
      back >= static_cast<double>(newest) ? 0 : newest - static_cast<uint64_t>(back);
  const uint64_t after = std::max(after_wall_us, oldest);
  // The wall clock may have been set back, so the search goes backwards from the newest time.
  size_t first = ring.times.size();
  while (first > 0 && ring.times[first - 1] > after) --first;
  samples.times_us.assign(ring.times.begin() + static_cast<ptrdiff_t>(first), ring.times.end());
  for (const auto& [key, column] : ring.columns) {
    if (!node.empty() && key.first != node) continue;
    samples.series.push_back(
        {.node = key.first,
         .name = key.second,
         .unit = column.unit,
         .values = {column.values.begin() + static_cast<ptrdiff_t>(first), column.values.end()}});
  }
  return samples;
}

}  // namespace muster::scaler
