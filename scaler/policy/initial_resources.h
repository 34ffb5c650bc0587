#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// Gives limits to nodes before their first start if the job file names none. They come from what
/// earlier runs of the same job needed. Without such runs, a node gets an even share of the memory
/// of the machine (or the budget). So a node that uses too much is killed, and not one that the
/// kernel picks. Without earlier runs, CPU is not limited, because a machine shares its cores out
/// by itself.
class InitialResourcesPolicy final : public Policy {
 public:
  using Options = InitialResourcesOptions;
  explicit InitialResourcesPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "initial-resources"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  double FromHistory(const RoleHistory& history) const;
  Proposal ForNode(const JobView& view, const NodeView& node, double capacity, double share) const;

  Options options_;
  std::set<std::string> proposed_;
};

}  // namespace muster::scaler
