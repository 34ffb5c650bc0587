#pragma once

#include <vector>

#include "scaler/model/model.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"

namespace muster::scaler {

/// Describes every policy for people: what it does, its thresholds by name (job/thresholds.h), and
/// its cooldown. The Decider adds what the policy did in a run.
std::vector<rest::Policy> DescribePolicies(const PolicyOptions& options,
                                           const Arbiter::Options& arbiter);

}  // namespace muster::scaler
