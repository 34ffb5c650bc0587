#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scaler/model/model.h"

namespace muster::scaler {

/// A figure at one moment, for people. NaN: not known.
struct Figure {
  std::string node;  // "": of the whole job
  const char* name = "";
  const char* unit = "";
  double value = 0;
};

/// Figures over time, for the dashboard: values of one second for 10 minutes, and values of 10
/// seconds for 6 hours. A value of 10 seconds is the mean of those that are known. docs/rest.md has
/// the names and units.
///
/// A figure is forgotten when all its values are unknown. At most kSeriesMax figures are kept;
/// later ones are left out. A value with one owner; not thread-safe.
class FigureRings {
 public:
  static constexpr size_t kFine = 600;     // values of 1 s
  static constexpr size_t kCoarse = 2160;  // values of 10 s
  static constexpr size_t kPerCoarse = 10;
  static constexpr size_t kSeriesMax = 4096;

  /// Call it once a second. Figures that are missing in `figures` are unknown at that time.
  void Add(uint64_t wall_us, const std::vector<Figure>& figures);

  /// Returns what was measured after `after_wall_us` and within the newest `window_s` seconds, for
  /// `node` ("" = all). The values are of 1 s if those reach back far enough, otherwise of 10 s.
  rest::Samples Since(const std::string& node, uint64_t after_wall_us, double window_s) const;

 private:
  struct Column {
    const char* unit = "";
    std::deque<float> values;
  };
  using Key = std::pair<std::string, std::string>;  // node, name
  struct Ring {
    size_t capacity = 0;
    std::deque<uint64_t> times;
    std::map<Key, Column> columns;

    void Add(uint64_t wall_us, const std::map<Key, std::pair<const char*, double>>& values);
  };
  struct Sum {
    const char* unit = "";
    double sum = 0;
    uint32_t count = 0;
  };

  Ring fine_{.capacity = kFine, .times = {}, .columns = {}};
  Ring coarse_{.capacity = kCoarse, .times = {}, .columns = {}};
  std::map<Key, Sum> sums_;  // of the coarse value in progress
  size_t summed_ = 0;
};

}  // namespace muster::scaler
