#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// A node that its own program ends is started again as it was; one that does nothing else ends the
/// job with the reason. Its keeper counts its ends (RestartPolicy): here that count is asked what
/// follows. Kills for memory below a limit are OutOfMemoryPolicy's, which gives more each time and
/// knows when to stop; kills by the platform count as no failure.
class CrashLoopPolicy final : public Policy {
 public:
  using Options = CrashLoopOptions;
  explicit CrashLoopPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "crash-loop"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  Options options_;
  std::map<std::string, uint32_t> answered_;  // by node: the newest start whose end was
};

/// A node killed by its platform is restarted at the same size; no retry is charged, and no other
/// policy takes it for its own reason.
class PlatformKillPolicy final : public Policy {
 public:
  std::string name() const override { return "platform-kill"; }
  std::vector<Proposal> Step(const JobView& view) override;
};

}  // namespace muster::scaler
