// What the oracle checks of evaluation passes.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sharding/partition_of.h"
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
    if (plan[i].mode != DatasetMode::kTrain || plan[i].stream.has_value()) continue;
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

void Oracle::OnPredicted(const ShardId& shard, const std::vector<SeenRow>& seen) {
  if (!predicted_.insert(shard).second) return;  // what is there is not replaced
  if (!failed_epochs_.empty()) return;  // training that was FAILED then may have come later
  for (const SeenRow& row : seen) {
    const PartitionId partition = PartitionOf(row.table, row.key, workload_->partitions());
    const Workload::Rows& rows = workload_->expected(partition);
    const auto end = rows.find({row.table, row.key});
    const std::vector<float> expected =
        end == rows.end() ? workload_->Initial(row.table, row.key) : end->second;
    if (row.values == expected) continue;
    Fail("predict", fmt::format("shard {} has outputs of row {} as {}, which ended as {}",
                                ToString(shard), row.key, row.values[0], expected[0]));
  }
}

void Oracle::CheckPredicted() {
  const std::vector<DatasetPlan> plan = workload_->plan();
  if (kPredictDataset.value() >= plan.size()) return;  // of a group
  for (uint64_t index = 0; index < plan[kPredictDataset.value()].shards; ++index) {
    const ShardId shard{kPredictDataset, EpochIndex(0), ShardIndex(index)};
    if (!predicted_.contains(shard)) Fail("predict", ToString(shard) + " has no outputs");
  }
}

}  // namespace muster::sim
