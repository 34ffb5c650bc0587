#pragma once

#include <vector>

#include "scaler/policy/straggler.h"

namespace muster::scaler {

/// Slow workers: by the time that the trainer computes per minibatch, and by the same with its
/// waits for servers, which are others' doing as a rule and must differ from its peers' by more.
/// Waits for shards do not count; all waits are told as evidence.
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
