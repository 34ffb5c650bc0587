#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"
#include "scaler/policy/theil_sen.h"

namespace muster::scaler {

/// Raises the memory limit of a node in place, before the node is killed, if its usage grows so
/// that it would soon reach the limit. A node at its bound gets nothing. If it is killed,
/// OutOfMemoryPolicy ends the job with the reason.
class PredictedOutOfMemoryPolicy final : public Policy {
 public:
  using Options = PredictedOutOfMemoryOptions;
  explicit PredictedOutOfMemoryPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "predicted-out-of-memory"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  struct Growth {
    RobustLine line;        // bytes over seconds from now
    double usage = 0;       // now: the median of the last three samples
    double growth = 0;      // over the window
    double to_limit_s = 0;  // until the limit is hit
    std::chrono::seconds window{0};
  };
  /// Finds growth that reaches `limit` within the horizon.
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
