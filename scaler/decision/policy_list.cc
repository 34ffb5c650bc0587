#include "scaler/decision/policy_list.h"

#include <chrono>
#include <string>

#include "job/thresholds.h"

namespace muster::scaler {

std::vector<rest::Policy> DescribePolicies(const PolicyOptions& options,
                                           const Arbiter::Options& arbiter) {
  PolicyOptions shown = options;
  std::vector<rest::Policy> policies;
  for (const KnownPolicy& known : KnownPolicies()) {
    rest::Policy& policy = policies.emplace_back();
    policy.name = known.name;
    policy.summary = known.summary;
    policy.dry_run = arbiter.dry_run;
    if (known.intervenes) {
      const auto own = arbiter.cooldowns.find(policy.name);
      const auto cooldown = own == arbiter.cooldowns.end() ? arbiter.cooldown : own->second;
      policy.cooldown_s = static_cast<double>(cooldown.count());
    }
    for (const Threshold& threshold : Thresholds()) {
      if (threshold.policy != known.name) continue;
      policy.options[std::string(threshold.shown)] = ValueAt(threshold.place(&shown));
    }
  }
  return policies;
}

}  // namespace muster::scaler
