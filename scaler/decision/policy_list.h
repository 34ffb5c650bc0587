#pragma once

#include <vector>

#include "scaler/model/model.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"

namespace muster::scaler {

/// Every policy as people see it: what it does, its thresholds by name (job/thresholds.h), its
/// cooldown. What happened in a run is the Decider's to add.
std::vector<rest::Policy> DescribePolicies(const PolicyOptions& options,
                                           const Arbiter::Options& arbiter);

}  // namespace muster::scaler
