#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "scaler/policy/policy.h"

namespace muster::scaler {

/// Limits for nodes of a job that names none, before their first start: from what the same job
/// needed in earlier runs, else an even share of the machine's (or the budget's) memory, so that
/// one node that runs away is killed and not whoever the kernel picks. CPU without history is not
/// limited: a machine shares it out by itself.
class InitialResourcesPolicy final : public Policy {
 public:
  struct Options {
    /// Without history, of what may be handed out: who needs more must be able to get it, and
    /// workers are added.
    double handed_out = 0.5;
    /// Of the machine's memory; the rest is for the system, the master and page cache.
    double machine_share = 0.8;
    /// Of the earlier peak, as after a kill: what grew once grows again.
    double memory_margin = 1.5;
    /// Of a small peak the margin is small, too: a limit near it is a trap, not a warm start.
    uint64_t memory_min_bytes = uint64_t{64} << 20;
    double cpu_margin = 1.5;
    /// Starting up needs more than training's 95th percentile.
    double cpus_min = 1.0;
  };
  InitialResourcesPolicy() : InitialResourcesPolicy(Options{}) {}
  explicit InitialResourcesPolicy(const Options& options) : options_(options) {}

  std::string name() const override { return "initial-resources"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  double FromHistory(const RoleHistory& history) const;
  Proposal ForNode(const JobView& view, const NodeView& node, double capacity, double share) const;

  Options options_;
  std::set<std::string> proposed_;
};

}  // namespace muster::scaler
