// What the oracle checks of evaluation passes.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tests/sim/oracle.h"

namespace muster::sim {

void Oracle::CheckTrainedFor(EpochIndex pass, const MasterCore& core) {
  const std::vector<DatasetPlan>& plan = core.options().datasets;
  for (uint32_t i = 0; i < plan.size(); ++i) {
    if (plan[i].mode != DatasetMode::kTrain) continue;
    const EpochIndex epoch(std::min(pass.value(), plan[i].epochs - 1));
    const EpochCounts counts = core.ledger().queue().Counts(DatasetId(i), epoch);
    if (counts.done + counts.committed + counts.failed == counts.shards &&
        !core.ledger().queue().IsOpen(DatasetId(i))) {
      continue;
    }
    Fail("evaluate", fmt::format("pass {} began while epoch {} of dataset {} was trained",
                                 pass.value(), epoch.value(), i));
  }
}

void Oracle::CheckEvaluatedBefore(EpochIndex epoch, const MasterCore& core) {
  if (epoch.value() == 0 || core.options().evaluation == Evaluation::kOverlapping) return;
  const EpochIndex pass(epoch.value() - 1);
  const EpochCounts counts = core.ledger().queue().Counts(kEvaluateDataset, pass);
  if (counts.done + counts.committed + counts.failed == counts.shards) return;
  Fail("evaluate",
       fmt::format("epoch {} began while pass {} had shards left", epoch.value(), pass.value()));
}

void Oracle::CheckEvaluated(EpochIndex pass) {
  const std::vector<DatasetPlan> plan = workload_->plan();
  for (uint32_t i = 0; i < plan.size(); ++i) {
    if (plan[i].mode == DatasetMode::kEvaluate || plan[i].stream.has_value()) continue;
    for (uint32_t e = 0; e < plan[i].epochs && e <= pass.value(); ++e) {
      // What was FAILED when the pass began may be tried again meanwhile.
      const uint64_t committed = committed_shards_[{DatasetId(i), EpochIndex(e)}].count();
      if (committed == plan[i].shards || failed_epochs_.contains(EpochIndex(e))) continue;
      Fail("evaluate", fmt::format("a shard of pass {} is COMMITTED, but of epoch {} of dataset {} "
                                   "only {} of {} shards are",
                                   pass.value(), e, i, committed, plan[i].shards));
    }
  }
}

}  // namespace muster::sim
