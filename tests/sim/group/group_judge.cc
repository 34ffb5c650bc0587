#include "tests/sim/group/group_judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::sim {
namespace {

std::string TextOfLabel(const StateLabel& label) {
  return fmt::format("step {} of lineage {}", label.step.value(), label.lineage.value());
}

}  // namespace

void GroupJudge::OnState(const StateLabel& label, ModelState state, const std::string& how) {
  const auto known = states_.find(label);
  if (known == states_.end()) {
    return oracle_->Fail("not-journaled",
                         fmt::format("{}: {} is not in the journal", how, TextOfLabel(label)));
  }
  if (known->second.state == state) return;
  oracle_->Fail("state", fmt::format("{}: it is not {}", how, TextOfLabel(label)));
}

void GroupJudge::OnSum(const GroupProcess& process, LineageNumber lineage, AttemptNumber attempt,
                       const StepWork& work, const ModelSum& sum) {
  std::vector<uint32_t> minibatches = sum.minibatches;
  std::ranges::sort(minibatches);
  std::vector<uint32_t> all;
  for (uint32_t m = 0; m < GroupMinibatchesOf(work.shard); ++m) all.push_back(m);
  if (minibatches != all) {
    return oracle_->Fail(
        "sum",
        fmt::format("the sum of step {}, attempt {}, has {} minibatches, not each of {} once",
                    work.step.value(), attempt.value(), minibatches.size(), all.size()));
  }
  AttemptSum& known = sums_[{attempt, work.step}];
  known.processes.insert(process);
  if (!known.sum.has_value()) known.sum = sum;
  if (known.sum->digest() != sum.digest()) {
    oracle_->Fail("sums-differ", fmt::format("step {}, attempt {} of lineage {}", work.step.value(),
                                             attempt.value(), lineage.value()));
  }
}

void GroupJudge::OnEvaluated(const GroupProcess& process, LineageNumber /*lineage*/,
                             AttemptNumber attempt, StepNumber step) {
  sums_[{attempt, step}].processes.insert(process);
}

void GroupJudge::CheckGroup(const GroupRecord& record) {
  if (record.lineage < group_.lineage || record.attempt < group_.attempt) {
    oracle_->Fail("shrank", "an attempt or a lineage of the journal became smaller");
  }
  if (record.attempt == group_.attempt && record.members != group_.members) {
    oracle_->Fail("attempt", fmt::format("attempt {} has two memberships", record.attempt.value()));
  }
  group_ = record;
}

void GroupJudge::CheckBase(const StepRecord& record) {
  const StateLabel label{record.lineage, record.step};
  ++rollbacks_;
  if (record.step < checkpoint_) {
    oracle_->Fail("rollback", fmt::format("a rollback to step {}, below the checkpoint {}",
                                          record.step.value(), checkpoint_.value()));
  }
  if (record.step == StepNumber() && model_.has_value()) {
    states_[label] = {InitialModel(model_->initial_digest), {}};
  } else {
    const auto base = states_.find({newest_.lineage, record.step});
    if (base == states_.end()) {
      return oracle_->Fail("rollback", fmt::format("{} is no state", TextOfLabel(label)));
    }
    // The steps before it are those of the former lineage.
    for (uint64_t step = 0; step <= record.step.value(); ++step) {
      const auto same = states_.find({newest_.lineage, StepNumber(step)});
      if (same != states_.end()) states_[{record.lineage, StepNumber(step)}] = same->second;
    }
  }
  newest_ = label;
}

void GroupJudge::CheckStep(const StepRecord& record, std::span<const Mutation> mutations) {
  const StateLabel label{record.lineage, record.step};
  step_ = record;
  if (label == newest_) return;
  if (record.attempt == AttemptNumber()) return CheckBase(record);
  if (label.lineage != newest_.lineage || label.step.value() != newest_.step.value() + 1) {
    return oracle_->Fail("step",
                         fmt::format("{} follows {}", TextOfLabel(label), TextOfLabel(newest_)));
  }
  const bool done = std::ranges::any_of(mutations, [&](const Mutation& mutation) {
    const auto* const one = std::get_if<DoneRecord>(&mutation);
    return one != nullptr && one->done.shard == record.shard;
  });
  if (!done) {
    return oracle_->Fail("step", fmt::format("{} is journaled without its shard {}",
                                             TextOfLabel(label), ToString(record.shard)));
  }
  const AttemptSum& sum = sums_[{record.attempt, record.step}];
  const ModelState before = states_.at(newest_).state;
  newest_ = label;
  states_[label] = {before, record.shard};
  if (record.attempt == group_.attempt) {
    for (const GroupProcess& member : group_.members) {
      if (sum.processes.contains(member)) continue;
      return oracle_->Fail("not-summed",
                           fmt::format("{} happened in attempt {}, but {} has no sum of it",
                                       TextOfLabel(label), record.attempt.value(), member.worker));
    }
  }
  if (IsGroupEvaluate(record.shard)) return;
  if (!sum.sum.has_value() || sum.sum->digest() != record.digest) {
    return oracle_->Fail("not-summed", fmt::format("{} has the digest of no sum of attempt {}",
                                                   TextOfLabel(label), record.attempt.value()));
  }
  ModelSum applied = *sum.sum;
  applied.records = record.records;
  states_[label].state = Applied(before, applied);
}

void GroupJudge::CheckCheckpoint(const CheckpointRecord& record) {
  if (record.label.step < checkpoint_) oracle_->Fail("shrank", "a checkpoint became older");
  checkpoint_ = record.label.step;
  for (const StateStripe& stripe : record.stripes) {
    const auto object = store_->find(stripe.object);
    if (object == store_->end()) {
      return oracle_->Fail("checkpoint", fmt::format("{} is not stored", stripe.object));
    }
    OnState(record.label, object->second, "the checkpoint " + stripe.object);
  }
  if (record.label.lineage != newest_.lineage) {
    oracle_->Fail("checkpoint", fmt::format("{} is of a dead lineage", TextOfLabel(record.label)));
  }
}

void GroupJudge::CheckCommitted(const EpochRecord& record) {
  std::map<ShardId, int> steps;
  for (uint64_t step = 1; step <= checkpoint_.value(); ++step) {
    const auto state = states_.find({newest_.lineage, StepNumber(step)});
    if (state != states_.end()) ++steps[state->second.shard];
  }
  for (const auto& [begin, end] : record.committed.intervals()) {
    for (uint64_t index = begin; index < end; ++index) {
      const ShardId shard{record.dataset, record.epoch, ShardIndex(index)};
      committed_.insert(shard);
      if (steps[shard] == 1) continue;
      oracle_->Fail("committed", fmt::format("shard {} is COMMITTED, and in {} steps of the "
                                             "checkpoint",
                                             ToString(shard), steps[shard]));
    }
  }
}

void GroupJudge::OnDurable(std::span<const Mutation> mutations, const DurableState& state) {
  for (const Mutation& mutation : mutations) {
    if (const auto* model = std::get_if<GroupModelRecord>(&mutation)) model_ = *model;
  }
  // A step that is journaled together with the next attempt was made in the one before.
  for (const Mutation& mutation : mutations) {
    if (const auto* step = std::get_if<StepRecord>(&mutation)) CheckStep(*step, mutations);
  }
  for (const Mutation& mutation : mutations) {
    if (const auto* group = std::get_if<GroupRecord>(&mutation)) CheckGroup(*group);
    if (const auto* checkpoint = std::get_if<CheckpointRecord>(&mutation)) {
      CheckCheckpoint(*checkpoint);
    }
  }
  for (const Mutation& mutation : mutations) {
    for (const EpochRecord& epoch : EpochsIn(mutation, GroupPlan())) CheckCommitted(epoch);
  }
  const uint64_t steps = state.group.step.value_or(StepRecord()).step.value();
  if (state.done.size() + committed_.size() != steps) {
    oracle_->Fail("step",
                  fmt::format("{} shards are COMMITTED and {} are DONE, but the newest step is {}",
                              committed_.size(), state.done.size(), steps));
  }
  if (!tables_ && committed_.size() != checkpoint_.value()) {
    oracle_->Fail("step", fmt::format("{} shards are COMMITTED, but the checkpoint is of step {}",
                                      committed_.size(), checkpoint_.value()));
  }
}

void GroupJudge::OnAnswer(const MasterCore& core, const DurableState& state) {
  const GroupCore::View view = core.group()->Show();
  const GroupRecord group = state.group.group.value_or(GroupRecord());
  const StepRecord step = state.group.step.value_or(StepRecord());
  if (view.lineage == group.lineage && view.attempt == group.attempt && view.step == step.step) {
    return;
  }
  oracle_->Fail("unsynced", fmt::format("an answer says step {}, attempt {}, before the journal",
                                        view.step.value(), view.attempt.value()));
}

void GroupJudge::OnStepped(const MasterCore& core, std::span<const Mutation> mutations) {
  for (const Mutation& mutation : mutations) {
    const auto* const step = std::get_if<StepRecord>(&mutation);
    if (step == nullptr || step->attempt != AttemptNumber() || step->step == StepNumber()) continue;
    for (const GroupCore::ProcessView& process : core.group()->Show().processes) {
      // It has not introduced itself, so it may be any process.
      if (process.standing == GroupStanding::kUnknown) continue;
      const bool newer = process.state.has_value() && process.state->step > step->step &&
                         process.state->lineage.value() + 1 == step->lineage.value() &&
                         process.waits.find("could not reach") == std::string::npos;
      const Report& report = reports_[{core.incarnation(), {process.worker, process.incarnation}}];
      // The state before the newest step, and the sum that makes it.
      const bool makes = report.state.has_value() && report.state->lineage == step_.lineage &&
                         report.state->step.value() + 1 == step_.step.value() &&
                         report.sum == AttemptStep(step_.attempt, step_.step) &&
                         step->step < step_.step && step_.attempt != AttemptNumber();
      if (!newer && makes && process.state == report.state) {
        oracle_->Fail("rollback", fmt::format("step {} is undone, but {} holds its sum",
                                              step_.step.value(), process.worker));
      }
      if (!newer) continue;
      oracle_->Fail("rollback",
                    fmt::format("a rollback to step {}, but {} holds {}", step->step.value(),
                                process.worker, TextOfLabel(*process.state)));
    }
  }
}

void GroupJudge::OnReport(MasterIncarnation master, const GroupExchangeRequest& report,
                          AttemptNumber attempt, StepNumber step) {
  Report& known = reports_[{master, {report.worker, report.incarnation}}];
  if (report.sequence <= known.sequence) return;
  known = {report.sequence, report.state, {attempt, step}};
}

void GroupJudge::OnEnd(const DurableState& state) {
  std::set<ShardId> all;
  const std::vector<DatasetPlan> plan = GroupPlan();
  for (uint32_t d = 0; d < plan.size(); ++d) {
    for (uint32_t e = 0; e < kGroupEpochs; ++e) {
      for (uint64_t i = 0; i < plan[d].shards; ++i) {
        all.insert({DatasetId(d), EpochIndex(e), ShardIndex(i)});
      }
      const auto whole = state.whole_epochs.find(DatasetId(d));
      const auto found = state.epochs.find({DatasetId(d), EpochIndex(e)});
      if (found == state.epochs.end() && whole != state.whole_epochs.end() &&
          whole->second.epochs.Contains(e)) {
        continue;
      }
      if (found == state.epochs.end() || found->second.committed.count() != plan[d].shards) {
        return oracle_->Fail("end-ledger",
                             fmt::format("epoch {} of dataset {} is not COMMITTED", e, d));
      }
      const ShardMetrics expected = GroupMetricsOfEpoch(DatasetId(d), EpochIndex(e));
      const ShardMetrics& merged = found->second.metrics;
      if (merged.records != expected.records || merged.means != expected.means) {
        oracle_->Fail("end-metrics",
                      fmt::format("metrics of epoch {} of dataset {}: {} records instead of {}", e,
                                  d, merged.records, expected.records));
      }
    }
  }
  if (newest_.step.value() != all.size() || checkpoint_ != newest_.step) {
    oracle_->Fail("end-ledger", fmt::format("{} steps, a checkpoint of step {}, but {} shards",
                                            newest_.step.value(), checkpoint_.value(), all.size()));
  }
  if (!exact_ || !model_.has_value()) return;
  // Bit for bit as if nothing had happened.
  ModelState expected = InitialModel(model_->initial_digest);
  for (uint64_t step = 1; step <= newest_.step.value(); ++step) {
    const StepState& made = states_.at({newest_.lineage, StepNumber(step)});
    if (all.erase(made.shard) == 0) {
      return oracle_->Fail("end-ledger",
                           fmt::format("shard {} is in two steps", ToString(made.shard)));
    }
    ModelSum sum;
    sum.records = uint64_t{kGroupMinibatchSize} * GroupMinibatchesOf(made.shard);
    for (uint32_t m = 0; m < GroupMinibatchesOf(made.shard); ++m) {
      sum.value += GradientOf(expected, made.shard, m);
    }
    if (!IsGroupEvaluate(made.shard)) expected = Applied(expected, sum);
    if (expected != made.state) {
      return oracle_->Fail("end-state", fmt::format("the state after step {} is not that of an "
                                                    "undisturbed run",
                                                    step));
    }
  }
}

}  // namespace muster::sim
