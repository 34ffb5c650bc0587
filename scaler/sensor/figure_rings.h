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

/// A figure at a moment, for people; NaN: not known.
struct Figure {
  std::string node;  // "": of the whole job
  const char* name = "";
  const char* unit = "";
  double value = 0;
};

/// Figures over time, for the dashboard: one value a second for 10 minutes, one of 10 seconds for 6
/// hours (the mean of those that are known). Names and units are those of docs/rest.md.
///
/// A figure that was not reported for the whole time is forgotten. At most kSeriesMax are kept;
/// those that come later are left out. A value with one owner; not thread-safe.
class FigureRings {
 public:
  static constexpr size_t kFine = 600;     // values of 1 s
  static constexpr size_t kCoarse = 2160;  // values of 10 s
  static constexpr size_t kPerCoarse = 10;
  static constexpr size_t kSeriesMax = 4096;

  /// Once a second. `figures` that are missing are not known then.
  void Add(uint64_t wall_us, const std::vector<Figure>& figures);

  /// What was taken after `after_wall_us` and within the newest `window_s` seconds, of `node` (""
  /// = all): values of 1 s when they reach back so far, else of 10 s.
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
