#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// Restarts a node unchanged when its own program ended it. If the node does nothing else but end,
/// the policy ends the job with the reason. The node's keeper counts the ends (RestartPolicy), and
/// this policy asks what follows from the count. OutOfMemoryPolicy answers kills for memory below a
/// limit: it gives more memory each time and knows when to stop. Kills by the platform do not count
/// as failures.
class CrashLoopPolicy final : public Policy {
 public:
  using Options = CrashLoopOptions;
  explicit CrashLoopPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "crash-loop"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  Options options_;
  std::map<std::string, uint32_t> answered_;  // by node: the newest start whose end was answered
};

/// Restarts a node that its platform killed, with the same limits. The kill counts as no failure,
/// and no other policy answers it.
class PlatformKillPolicy final : public Policy {
 public:
  std::string name() const override { return "platform-kill"; }
  std::vector<Proposal> Step(const JobView& view) override;
};

}  // namespace muster::scaler
