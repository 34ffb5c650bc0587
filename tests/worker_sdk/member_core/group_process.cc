#include "tests/worker_sdk/member_core/group_process.h"

#include <algorithm>
#include <utility>

namespace muster::sdk {

void GroupProcess::TrainerStep(bool fails, Probes* probes) {
  if (restart_ || ended_) return;
  if (in_loop_) return ComputeStep(fails, probes);
  if (task_.kind == TrainerTask::Kind::kApply || task_.kind == TrainerTask::Kind::kReplay) {
    return ApplyStep(probes);
  }
  task_ = core_.NextTask();
  switch (task_.kind) {
    case TrainerTask::Kind::kWait:
      break;
    case TrainerTask::Kind::kCompute:
      if (task_.run != run_) gradients_.clear();
      if (task_.run == run_ && task_.attempt != contributed_) ++probes->kept_runs;
      run_ = task_.run;
      to_compute_.clear();
      for (const MinibatchSpan& span : task_.spans) {
        for (uint32_t i = 0; i < span.count; ++i) to_compute_.push_back(span.first.value() + i);
      }
      in_loop_ = true;
      break;
    case TrainerTask::Kind::kApply:
    case TrainerTask::Kind::kReplay:
      torn_ = true;
      break;
    case TrainerTask::Kind::kRestart:
      restart_ = true;
      ++probes->restarts;
      break;
    case TrainerTask::Kind::kEnd:
      ended_ = true;
      break;
  }
}

void GroupProcess::ComputeStep(bool fails, Probes* probes) {
  if (fails) {
    core_.OnTrainerFailed(task_.run, "it fails", false);
    ++probes->failed;
  }
  if (computing_.has_value()) {
    if (task_.run == run_)
      gradients_[*computing_] = std::to_string(*computing_) + "@" + std::to_string(memory_.size()) +
                                (torn_ ? "torn" : "");
    core_.OnMinibatch(task_.run, MinibatchIndex(*computing_), std::chrono::microseconds(10));
    computing_.reset();
    return;
  }
  if (!to_compute_.empty() &&
      core_.StartMinibatch(task_.run, MinibatchIndex(to_compute_.front()))) {
    computing_ = to_compute_.front();
    to_compute_.erase(to_compute_.begin());
    return;
  }
  in_loop_ = false;
  ShardMetrics metrics;
  if (task_.run == run_) metrics.records = gradients_.size();
  core_.OnComputed(task_.run, metrics);
  task_ = {};
}

void GroupProcess::ApplyStep(Probes* probes) {
  bool own = task_.kind == TrainerTask::Kind::kApply;
  StepContent content = task_.evaluation ? "evaluated" : own ? sum_ : fetched_;
  ++(own ? probes->applied : probes->replayed);
  memory_.push_back(content);
  StateLabel before = *core_.state();
  core_.OnApplied();
  torn_ = false;
  if (core_.SumsKeptAfter().has_value()) {
    kept_.push_back({{before.lineage, task_.step}, content});
  }
  PruneKept();
  task_ = {};
}

void GroupProcess::PruneKept() {
  std::optional<StepNumber> after = core_.SumsKeptAfter();
  std::erase_if(kept_, [&](const Kept& kept) {
    return !after.has_value() || kept.after.step <= *after ||
           kept.after.lineage != core_.view().lineage;
  });
}

void GroupProcess::SumStep(Fabric* fabric, bool fails, Probes* probes) {
  PruneKept();
  std::optional<WantedSum> wanted = core_.WantedSums();
  std::optional<GroupRing> ring = core_.WantedRing();
  if (!wanted.has_value()) return;
  if (fails && ring->members.size() > 1) {
    const GroupMember& other = ring->members[(ring->rank + 1) % ring->members.size()];
    core_.OnSumFailed(wanted->attempt, {other.worker, other.incarnation, "reset"});
    ++probes->suspected;
    return;
  }
  auto& sum = (*fabric)[{ring->lineage.value(), wanted->attempt.value(), wanted->step.value()}];
  if (contributed_ != wanted->attempt || contributed_step_ != wanted->step) {
    if (wanted->run != run_) gradients_.clear(), run_ = wanted->run;
    std::set<uint32_t> share, added;
    for (const MinibatchSpan& span : wanted->share) {
      for (uint32_t i = 0; i < span.count; ++i) share.insert(span.first.value() + i);
    }
    std::vector<std::string> parts;
    for (const auto& [minibatch, part] : gradients_) added.insert(minibatch), parts.push_back(part);
    if (added != share) return;
    sum[name_] = parts;
    contributed_ = wanted->attempt;
    contributed_step_ = wanted->step;
    return;
  }
  StepContent content = std::to_string(wanted->attempt.value());
  std::vector<std::string> parts;
  for (const GroupMember& member : ring->members) {
    auto part = sum.find({member.worker, member.incarnation});
    if (part == sum.end()) return;
    parts.insert(parts.end(), part->second.begin(), part->second.end());
  }
  std::ranges::sort(parts);
  for (const std::string& part : parts) content += " " + part;
  sum_ = content;
  core_.OnSum(wanted->attempt, wanted->step, static_cast<uint32_t>(parts.size()));
}

void GroupProcess::TransferStep(const std::vector<GroupProcess*>& all, const ModelState& stored,
                                bool fails, TimePoint now, Rng* rng, Probes* probes) {
  if (!transfer_.has_value()) {
    transfer_ = std::exchange(Effects(now).transfer, std::nullopt);
    if (transfer_.has_value() && transfer_->kind == GroupTransfer::Kind::kCopyState) {
      torn_ = true;
      memory_.clear();
    }
    return;
  }
  if (fails || std::exchange(Effects(now).stop_transfer, false)) {
    transfer_.reset();
    core_.OnTransferFailed(now);
  } else if (transfer_->kind == GroupTransfer::Kind::kCopyState) {
    FinishCopy(all, stored, now, probes);
  } else {
    FinishFetch(all, now, rng, probes);
  }
}

void GroupProcess::FinishCopy(const std::vector<GroupProcess*>& all, const ModelState& stored,
                              TimePoint now, Probes* probes) {
  StateLabel label = transfer_->source.label;
  std::vector<GroupMember> holders = transfer_->source.holders;
  transfer_.reset();
  std::optional<ModelState> state;
  for (const GroupMember& holder : holders) {
    if (holder.worker.empty()) {
      // A newer checkpoint has replaced the one that was named.
      if (stored.size() == label.step.value()) state = stored;
      break;
    }
    state.reset();
    for (GroupProcess* other : all) {
      if (other->name_ == ProcessName{holder.worker, holder.incarnation} &&
          other->copy_.has_value() && other->copy_->label == label) {
        state = other->copy_->state;
      }
    }
    if (!state.has_value()) break;
  }
  if (!state.has_value()) return core_.OnTransferFailed(now);
  memory_ = *state;
  torn_ = false;
  ++probes->copied;
  core_.OnStateCopied(label);
}

void GroupProcess::FinishFetch(const std::vector<GroupProcess*>& all, TimePoint now, Rng* rng,
                               Probes* probes) {
  GroupTransfer transfer = *transfer_;
  transfer_.reset();
  int reached = 0;
  for (const GroupMember& holder : transfer.holders) {
    for (GroupProcess* other : all) {
      if (other->name_ != ProcessName{holder.worker, holder.incarnation}) continue;
      ++reached;
      for (const Kept& kept : other->kept_) {
        if (kept.after != StateLabel{transfer.lineage, transfer.step}) continue;
        if (rng->Below(3) == 0) continue;
        fetched_ = kept.content;
        return core_.OnSumFetched(transfer.step);
      }
    }
  }
  if (reached == 0 || rng->Below(2) == 0) return core_.OnTransferFailed(now);
  ++probes->missing;
  core_.OnSumMissing(transfer.step);
}

void GroupProcess::CaptureStep(TimePoint now, Probes* probes) {
  if (to_store_) {
    core_.OnStored(copy_->label, "at/" + name_.first);
    to_store_ = false;
    return;
  }
  if (!capturing_.has_value()) {
    std::optional<CaptureOrder> order = std::exchange(Effects(now).capture, std::nullopt);
    if (order.has_value()) capturing_.emplace(*order, memory_);
    return;
  }
  const auto& [order, begun] = *capturing_;
  // A torn copy would show up in whoever takes it.
  ModelState state = torn_ || begun != memory_ ? ModelState{"torn"} : memory_;
  copy_ = Copy{order.label, state};
  to_store_ = !order.object_prefix.empty();
  capturing_.reset();
  ++probes->captured;
  core_.OnCaptured({.stripe = 0, .bytes = 1, .crc = 1, .object = ""});
}

}  // namespace muster::sdk
