#pragma once

#include <vector>

#include "scaler/policy/straggler.h"

namespace muster::scaler {

/// Finds slow workers by the time that the trainer computes per minibatch, and by the same time
/// with waits for servers. Those waits are usually not the worker's fault, so they must differ more
/// from its peers'. Waits for shards do not count. All waits are shown as evidence.
class WorkerStragglerPolicy final : public Policy {
 public:
  using Options = StragglerOptions;
  explicit WorkerStragglerPolicy(const Options& options = {});

  std::string name() const override { return "worker-straggler"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  StragglerJudge judge_;
};

}  // namespace muster::scaler
