#include "scaler/policy/policies.h"

#include <iterator>

namespace muster::scaler {

std::vector<std::unique_ptr<Policy>> MakePolicies(const PolicyOptions& options) {
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::make_unique<CrashLoopPolicy>(options.crash_loop));
  policies.push_back(std::make_unique<OutOfMemoryPolicy>(options.out_of_memory));
  policies.push_back(std::make_unique<PlatformKillPolicy>());
  policies.push_back(std::make_unique<InitialResourcesPolicy>(options.initial_resources));
  policies.push_back(std::make_unique<PredictedOutOfMemoryPolicy>(options.predicted_out_of_memory));
  policies.push_back(std::make_unique<HangPolicy>(options.hang));
  policies.push_back(std::make_unique<ServerStragglerPolicy>(options.server_straggler));
  policies.push_back(std::make_unique<WorkerStragglerPolicy>(options.worker_straggler));
  policies.push_back(std::make_unique<NoRoomPolicy>(options.no_room));
  policies.push_back(std::make_unique<WorkerCountPolicy>(options.worker_count, options.no_room));
  return policies;
}

std::vector<Proposal> StepAll(const std::vector<std::unique_ptr<Policy>>& policies,
                              const JobView& view) {
  std::vector<Proposal> all;
  for (const std::unique_ptr<Policy>& policy : policies) {
    std::vector<Proposal> proposals = policy->Step(view);
    all.insert(all.end(), std::make_move_iterator(proposals.begin()),
               std::make_move_iterator(proposals.end()));
  }
  return all;
}

}  // namespace muster::scaler
