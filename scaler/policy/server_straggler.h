#pragma once

#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/straggler.h"

namespace muster::scaler {

/// Servers that answer slowly: by the time that their lanes serve a request, and by the round trip
/// that workers see. The second finds one that is slow with idle lanes and little CPU: throttled
/// between requests, behind a bad link, starved by a neighbour. More requests or partitions than
/// its peers have do not make a server slow by either, nor do larger requests: those may take
/// longer in proportion to the bytes that they move. The clock of a worker that is slow itself, or
/// stopped, makes round trips long: without another server to compare with, they prove nothing, and
/// only the server's own clock counts.
class ServerStragglerPolicy final : public Policy {
 public:
  using Options = ServerStragglerOptions;
  explicit ServerStragglerPolicy(const Options& options = {});

  std::string name() const override { return "server-straggler"; }
  std::vector<Proposal> Step(const JobView& view) override { return judge_.Step(view); }

 private:
  StragglerJudge judge_;
};

}  // namespace muster::scaler
