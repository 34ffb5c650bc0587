#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// Limits for nodes of a job that names none, before their first start: from what the same job
/// needed in earlier runs, else an even share of the machine's (or the budget's) memory, so that a
/// node that uses too much is killed, and not one that the kernel picks. CPU without history is not
/// limited: a machine shares it out by itself.
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
