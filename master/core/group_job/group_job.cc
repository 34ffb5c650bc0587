#include "master/core/group_job/group_job.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

absl::Status GroupJob::CheckFits(const CoreOptions& options, const DurableState& state) {
  if (!options.group.has_value()) return absl::OkStatus();
  const uint64_t step = state.group.step.value_or(StepRecord()).step.value();
  const uint64_t stored =
      state.group.checkpoint.has_value() ? state.group.checkpoint->label.step.value() : 0;
  // With servers, older steps may still wait for snapshots, also those of a run before this one.
  const bool fits = state.done.size() >= step - stored;
  if (options.servers == 0 && !state.tables.empty()) {
    return absl::FailedPreconditionError(
        "the group of this job has tables on parameter servers, so "
        "spec.replicaSpecs.ps.replicas may not be 0");
  }
  if (stored <= step && fits) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("the journal has step {} of the group and a checkpoint of step {}, but {} DONE "
                  "shards",
                  step, stored, state.done.size()));
}

GroupJob::GroupJob(const Books* books, GroupShards* shards, JobLife* life, GroupRecords records,
                   TimePoint now)
    : books_(books), shards_(shards), life_(life), stores_(books, life) {
  if (!books_->options.group.has_value()) return;
  if (records.group.has_value()) journaled_ = records.group->members;
  core_.emplace(*books_->options.group, books_->incarnation, std::move(records), shards_, now);
}

absl::Status GroupJob::Exchange(const GroupExchangeRequest& request, StepTime at) {
  shards_->SetTime(at);
  return core_->Exchange(request, at.now);
}

void GroupJob::BeginRun(StepTime at) {
  for (const GroupProcess& process : journaled_) {
    Exited({process.worker, process.incarnation}, {}, "", at);
  }
}

void GroupJob::Exited(const WorkerKey& process, LeaseToken token, std::string_view why,
                      StepTime at) {
  if (!on()) return;
  shards_->SetTime(at);
  if (token == LeaseToken()) return core_->Gone(process.name, process.incarnation, at.now);
  core_->Crashed(process.name, process.incarnation, token, why, at.now);
}

void GroupJob::Drain(const std::string& worker, bool drains, StepTime at) {
  if (!on()) return;
  shards_->SetTime(at);
  core_->Drain(worker, drains, at.now);
}

void GroupJob::Tick(StepTime at) {
  if (!on()) return;
  shards_->SetTime(at);
  if (life_->Directive() == JobDirective::kDrain) {
    for (const GroupCore::ProcessView& process : core_->Show().processes) {
      core_->Drain(process.worker, true, at.now);
    }
  }
  core_->Tick(at.now);
  stores_.Take(core_->stored_states(), at);
}

void GroupJob::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  if (on()) core_->Forgive(gap, now);
}

bool GroupJob::FitsLedger() const {
  return !on() || core_->steps_after_checkpoint() == books_->ledger.done_after_checkpoint();
}

void GroupJob::Collect(std::vector<Mutation>* mutations) {
  if (!on()) return;
  std::vector<GroupMutation> own;
  core_->Collect(&own);
  for (GroupMutation& mutation : own) {
    std::visit([&](auto& record) { mutations->emplace_back(std::move(record)); }, mutation);
  }
}

std::vector<std::string> GroupJob::TakeUnusedFiles() {
  return on() ? core_->TakeUnusedObjects() : std::vector<std::string>();
}

}  // namespace muster
