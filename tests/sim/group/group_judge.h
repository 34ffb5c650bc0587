#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "master/core/durable_state.h"
#include "master/core/master_core.h"
#include "tests/sim/group/group_model.h"
#include "tests/sim/oracle.h"

namespace muster::sim {

/// The judge of a group job: what the journal says is the lineage of the model's states, and
/// nothing may differ from it. Violations go to the oracle.
class GroupJudge {
 public:
  struct Options {
    bool exact = true;    // sums do not depend on how the minibatches are divided
    bool tables = false;  // COMMITTED waits for snapshots, too
  };
  GroupJudge(Oracle* oracle, const ModelStore* store, Options options)
      : oracle_(oracle), store_(store), exact_(options.exact), tables_(options.tables) {}

  // ---- the journal and the master ----
  void OnDurable(std::span<const Mutation> mutations, const DurableState& state);
  /// An answer leaves: what it says of the group must be durable.
  void OnAnswer(const MasterCore& core, const DurableState& state);
  /// The core has just made these mutations.
  void OnStepped(const MasterCore& core, std::span<const Mutation> mutations);
  /// A call of a process has reached the master. Its trainer held the sum of this attempt's step
  /// when it was sent.
  void OnReport(MasterIncarnation master, const GroupExchangeRequest& report, AttemptNumber attempt,
                StepNumber step);
  void OnEnd(const DurableState& state);
  /// Lineages that have begun, after the first.
  uint64_t rollbacks() const { return rollbacks_ - (rollbacks_ > 0 ? 1 : 0); }

  // ---- the members ----
  /// The process has the sum of an attempt's step.
  void OnSum(const GroupProcess& process, LineageNumber lineage, AttemptNumber attempt,
             const StepWork& work, const ModelSum& sum);
  /// The process has computed its part of an evaluation.
  void OnEvaluated(const GroupProcess& process, LineageNumber lineage, AttemptNumber attempt,
                   StepNumber step);
  /// The memory of a process is said to be this state. `how`: for people.
  void OnState(const StateLabel& label, ModelState state, const std::string& how);

 private:
  struct StepState {
    ModelState state = 0;
    ShardId shard;
  };
  struct AttemptSum {
    std::set<GroupProcess> processes;
    std::optional<ModelSum> sum;
  };
  using AttemptStep = std::pair<AttemptNumber, StepNumber>;

  struct Report {
    uint64_t sequence = 0;
    std::optional<StateLabel> state;
    AttemptStep sum;
  };

  void CheckGroup(const GroupRecord& record);
  void CheckStep(const StepRecord& record, std::span<const Mutation> mutations);
  void CheckBase(const StepRecord& record);
  void CheckCheckpoint(const CheckpointRecord& record);
  void CheckCommitted(const EpochRecord& record);

  Oracle* const oracle_;
  const ModelStore* const store_;
  const bool exact_, tables_;
  uint64_t rollbacks_ = 0;
  std::optional<GroupModelRecord> model_;
  GroupRecord group_;
  StateLabel newest_;
  std::map<StateLabel, StepState> states_;
  std::map<AttemptStep, AttemptSum> sums_;
  StepNumber checkpoint_;
  /// To each master.
  std::map<std::pair<MasterIncarnation, GroupProcess>, Report> reports_;
  StepRecord step_;
  /// What was COMMITTED at any time.
  std::set<ShardId> committed_;
};

}  // namespace muster::sim
