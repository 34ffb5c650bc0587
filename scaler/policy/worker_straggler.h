#pragma once

#include <vector>

#include "scaler/policy/straggler.h"

namespace muster::scaler {

/// Workers that compute slowly: by the time that the trainer computes per minibatch. What a worker
/// waits for shards, pulls and pushes is others' doing, so it does not count, and is told as
/// evidence.
class WorkerStragglerPolicy final : public Policy {
 public:
  struct Options : StragglerOptions {};
  WorkerStragglerPolicy() : WorkerStragglerPolicy(Options{}) {}
  explicit WorkerStragglerPolicy(const Options& options);

  std::string name() const override { return "worker-straggler"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  StragglerJudge judge_;
};

}  // namespace muster::scaler
