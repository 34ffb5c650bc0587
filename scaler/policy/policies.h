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

/// All of them, as KnownPolicies() has them. Where two want something of one node at once, the
/// earlier one is heard.
std::vector<std::unique_ptr<Policy>> MakePolicies(const PolicyOptions& options = {});

/// One step of each, in order.
std::vector<Proposal> StepAll(const std::vector<std::unique_ptr<Policy>>& policies,
                              const JobView& view);

}  // namespace muster::scaler
