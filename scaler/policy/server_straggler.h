#pragma once

#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/straggler.h"

namespace muster::scaler {

/// Finds servers that answer slowly. It uses two times: the time that a server's lanes serve a
/// request, and the round trip that workers see. The second one finds a server that is slow
/// although its lanes are idle and it uses little CPU. Such a server may be throttled between
/// requests, have a bad link, or be starved by another program. If a server has more requests or
/// partitions than its peers, neither time becomes longer for that. Larger requests may take
/// longer, in proportion to the bytes that they move. A worker that is slow itself, or stopped,
/// measures long round trips. So without another server to compare with, round trips prove nothing,
/// and only the server's own time counts.
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
