#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scaler/policy/policy.h"
#include "scaler/policy/theil_sen.h"

namespace muster::scaler {

/// Raises the memory limit of a node whose usage grows so that it would hit it soon, in place,
/// before the kill. A node that is at its bound gets nothing: should it be killed,
/// OutOfMemoryPolicy ends the job with the reason.
class PredictedOutOfMemoryPolicy final : public Policy {
 public:
  struct Options {
    /// What the fit looks at: several garbage collections or snapshots, and no more than what still
    /// says something about now.
    std::chrono::seconds window{60};
    /// After a start: loading code and data is a ramp, not growth.
    std::chrono::seconds settle{5};
    /// For a fit that a few odd readings cannot turn.
    size_t points_min = 8;
    std::chrono::seconds span_min{8};
    /// Below, whoever starts has room enough; above, it is time to look ahead.
    double usage_min = 0.75;
    /// The limit must be hit within so long. Raising in place takes effect at once, so this is for
    /// growth that turns steeper.
    std::chrono::seconds horizon{60};
    /// Kendall's tau: how many pairs of readings rise rather than fall. Noise gives 0 +- 0.25 with
    /// 8 points and less with more, a sawtooth of several teeth about 0.
    double concordance_min = 0.7;
    /// Growth over the window against the noise around the line, and against the limit.
    double growth_to_noise_min = 4;
    double growth_of_limit_min = 0.01;
    /// Usage must be above everything before the window by so much: a sawtooth comes back.
    double new_high = 1.01;
    /// So many steps with new readings in a row.
    uint32_t confirmations = 3;
    /// As after a kill; more where the line says so: what is needed two horizons from now.
    double factor = 1.5;
    double gain_min = 1.05;
  };
  PredictedOutOfMemoryPolicy() : PredictedOutOfMemoryPolicy(Options{}) {}
  explicit PredictedOutOfMemoryPolicy(const Options& options) : options_(options) {}

  std::string name() const override { return "predicted-out-of-memory"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  struct Growth {
    RobustLine line;        // bytes over seconds from now
    double usage = 0;       // now: the median of the last three readings
    double growth = 0;      // over the window
    double to_limit_s = 0;  // until the limit is hit
    std::chrono::seconds window{0};
  };
  /// Growth that hits `limit` within the horizon.
  std::optional<Growth> FindGrowth(const JobView& view, const NodeView& node, uint64_t limit) const;
  std::optional<Proposal> Raise(const JobView& view, const NodeView& node, uint64_t limit,
                                const Growth& growth) const;

  struct Seen {
    TimePoint newest;
    uint32_t in_a_row = 0;
  };
  Options options_;
  std::map<std::string, Seen> seen_;
};

}  // namespace muster::scaler
