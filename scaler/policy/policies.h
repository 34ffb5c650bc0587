#pragma once

#include <memory>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/crash_loop.h"
#include "scaler/policy/hang.h"
#include "scaler/policy/initial_resources.h"
#include "scaler/policy/no_room.h"
#include "scaler/policy/out_of_memory.h"
#include "scaler/policy/predicted_out_of_memory.h"
#include "scaler/policy/server_straggler.h"
#include "scaler/policy/worker_count.h"
#include "scaler/policy/worker_straggler.h"

namespace muster::scaler {

/// Makes all policies, in the order of KnownPolicies(). If two policies propose something for one
/// node at once, the earlier one has priority.
std::vector<std::unique_ptr<Policy>> MakePolicies(const PolicyOptions& options = {});

/// Steps each policy once, in order.
std::vector<Proposal> StepAll(const std::vector<std::unique_ptr<Policy>>& policies,
                              const JobView& view);

}  // namespace muster::scaler
