#include "master/core/master_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "base/text.h"

namespace muster {
namespace {

/// Counts alone are written no more often than this.
constexpr std::chrono::seconds kTotalsInterval{1};
/// Ticks come every 50 ms or so; this long without one, the process stood still.
constexpr std::chrono::seconds kPauseMin{1};

Forgetting::Shards CommittedTraining(const CoreOptions& options, const DurableState& state) {
  Forgetting::Shards shards;
  for (const auto& [key, record] : state.epochs) {
    if (options.datasets[key.first.value()].mode == DatasetMode::kEvaluate) continue;
    if (!record.committed.empty()) shards[key] = record.committed;
  }
  return shards;
}

MasterIncarnation NextIncarnation(const DurableState& state) {
  return state.meta.has_value() ? state.meta->incarnation.Next() : MasterIncarnation(1);
}

}  // namespace

absl::Status MasterCore::CheckFits(const CoreOptions& options, const DurableState& state) {
  if (!state.partitions.empty() && state.partitions.size() != options.partitions) {
    return absl::FailedPreconditionError(
        fmt::format("the journal has {} partitions and the job file {}: spec.partitions may not "
                    "change on resume",
                    state.partitions.size(), options.partitions));
  }
  return Ledger::CheckFits(options.datasets, state);
}

MasterCore::MasterCore(CoreOptions options, MasterIncarnation incarnation, DurableState&& state,
                       StepTime at)
    : books_(std::move(options), incarnation, &state, at.now),
      started_at_(at.now),
      failures_(&books_),
      leasing_(&books_, &failures_, CommittedTraining(books_.options, state)),
      dones_(&books_, &leasing_),
      gate_(books_.options.limits),
      tables_(std::move(state.tables)),
      meta_at_(at.now),
      now_(at.now),
      ticked_at_(at.now) {
  if (!state.meta.has_value() || MUSTER_PLANTED(kServersAgain)) return;
  newest_server_ = state.meta->newest_server_incarnation;
}

MasterCore::MasterCore(CoreOptions options, DurableState state, StepTime at)
    : MasterCore(std::move(options), NextIncarnation(state), std::move(state), at) {
  Begin(state, at);
}

MasterCore::MasterCore(CoreOptions options, DurableState state, AsFound)
    : MasterCore(std::move(options),
                 state.meta.has_value() ? state.meta->incarnation : MasterIncarnation(),
                 std::move(state), StepTime{}) {
  if (!state.meta.has_value()) return;
  state_ = state.meta->state;
  reason_ = state.meta->reason;
}

void MasterCore::Begin(const DurableState& state, StepTime at) {
  new_run_ = !state.meta.has_value() || state.meta->run_id != books_.options.run_id;
  if (new_run_) {
    BeginRun(at);
  } else {
    state_ = state.meta->state;
    reason_ = state.meta->reason;
    ++books_.totals.master_restarts;
    if (IsTerminal(state_)) leasing_.Close();
    std::set<std::string> workers;
    for (const auto& [name, node] : books_.nodes.nodes()) {
      if (node.record.role == kRoleWorker && node.record.state == "running") workers.insert(name);
    }
    leasing_.grace().Begin(std::move(workers), at.now + books_.options.leases.grace_period);
    if (state_ == JobState::kDraining) drain_began_ = at.now;
    books_.Say(
        at, "master-restarted", "master",
        fmt::format("incarnation {} goes on from the journal: {} of {} shards COMMITTED, {} "
                    "DONE",
                    books_.incarnation.value(), books_.ledger.queue().committed_count(),
                    books_.ledger.queue().shard_count(), books_.ledger.queue().done().size()));
  }
  for (const auto& [name, node] : books_.nodes.nodes()) {
    if (node.record.state == "running") books_.nodes.Find(name)->last_heard = at.now;
  }
  if (books_.options.retry_failed && new_run_) {
    for (const ShardId& shard : books_.ledger.queue().FailedShards()) books_.ledger.Retry(shard);
  }
  TryCommit(at);
  CheckRejects(at);
  CheckLimits(at);
  CheckEnd(at);
}

void MasterCore::BeginRun(StepTime at) {
  books_.nodes.BeginRun();
  books_.Say(at, "run-started", "",
             fmt::format("incarnation {}: {} of {} shards COMMITTED, {} partitions on {} servers",
                         books_.incarnation.value(), books_.ledger.queue().committed_count(),
                         books_.ledger.queue().shard_count(), books_.options.partitions,
                         books_.options.servers));
  Replay(books_.partitions.BeginRun(books_.options.servers), "a new run began", at);
}

void MasterCore::Replay(const PartitionTable::Restored& restored, const std::string& why,
                        StepTime at) {
  if (restored.partitions == 0) return;
  leasing_.OnRestored(at.now);
  const std::vector<DoneShard> shards = books_.ledger.ReplayAfter(
      MUSTER_PLANTED(kNoReplay) ? books_.ledger.done_seq() : restored.replay_after);
  books_.totals.replayed_shards += shards.size();
  for (const DoneShard& done : shards) {
    books_.totals.redelivered_minibatches += books_.ledger.MinibatchesOf(done.shard);
  }
  const size_t evaluations = leasing_.EndOutdatedEvaluations(shards);
  books_.Say(at, "partitions-restored", "",
             fmt::format("{}: {} partitions {}, {} DONE shards run again{} (restore epoch {})", why,
                         restored.partitions,
                         books_.totals.snapshots_accepted == 0 ? "start with no snapshot yet"
                                                               : "come back from their snapshots",
                         shards.size(),
                         evaluations == 0
                             ? ""
                             : fmt::format(", {} evaluate shard{} afterwards", evaluations,
                                           evaluations == 1 ? " begins again" : "s begin again"),
                         books_.partitions.restore_epoch().value()));
}

void MasterCore::TryCommit(StepTime at) {
  const DoneSeq cut = books_.partitions.MinCut();
  if (cut <= books_.ledger.commit_seq()) return;
  std::set<std::pair<DatasetId, EpochIndex>> epochs;
  for (const Ledger::Committed& committed : books_.ledger.CommitUpTo(cut)) {
    epochs.insert({committed.done.shard.dataset, committed.done.shard.epoch});
    leasing_.forgetting().OnCommitted(committed.done.shard);
    if (Node* node = books_.nodes.Find(committed.worker)) {
      node->record.records_committed += committed.records;
      books_.nodes.Touch(*node);
    }
  }
  for (const auto& [dataset, epoch] : epochs) books_.SayWhenCommitted(dataset, epoch, at);
  CheckLimits(at);
  CheckEnd(at);
}

void MasterCore::CheckRejects(StepTime at) {
  if (IsTerminal(state_) || books_.ledger.rejected_records() <= books_.options.rejected_records_max)
    return;
  const auto& events = books_.events.events();
  const auto sample = std::find_if(events.rbegin(), events.rend(), [](const auto& event) {
    return event.second.kind == kRecordRejected;
  });
  EndJob(JobState::kFailed,
         fmt::format("{} rejected {}, spec.training.rejectedRecordsMax is {}{}. To go on without "
                     "such records raise the limit and run again; to train with fixed data choose "
                     "another spec.stateDirectory",
                     books_.ledger.rejected_records(),
                     books_.ledger.rejected_records() == 1 ? "record" : "records",
                     books_.options.rejected_records_max,
                     sample == events.rend() ? "" : "; the last: " + sample->second.text),
         at);
}

void MasterCore::CheckLimits(StepTime at) {
  for (const auto& [dataset, epoch] : books_.ledger.TakeDroppedMetrics()) {
    books_.Say(at, "metrics-dropped", "",
               fmt::format("epoch {} of dataset '{}' has {} metrics, the limit: those with other "
                           "names are dropped",
                           epoch.value(), books_.options.datasets[dataset.value()].name,
                           books_.options.limits.metric_names));
  }
  if (IsTerminal(state_)) return;
  if (auto news = gate_.Look(books_.ledger.done_bytes(), books_.ledger.failure_bytes());
      news.has_value()) {
    books_.Say(at, std::move(news->kind), "", news->text);
  }
}

void MasterCore::CheckEnd(StepTime at) {
  if (IsTerminal(state_)) return;
  const ShardQueue& queue = books_.ledger.queue();
  const bool all_done =
      queue.committed_count() + queue.failed_count() + queue.done().size() == queue.shard_count();
  if (queue.Finished() || (MUSTER_PLANTED(kEndWhenDone) && all_done)) {
    if (queue.failed_count() == 0) return EndJob(JobState::kSucceeded, "", at);
    return EndJob(JobState::kFailed, FailedText(), at);
  }
  const bool idle = leasing_.table().size() == 0 && queue.done().empty() && !leasing_.grace().on();
  if (gate_.too_many_failures() && state_ == JobState::kRunning && idle) {
    return EndJob(JobState::kFailed, "too many failures to go on: " + FailedText(), at);
  }
  if (state_ == JobState::kDraining && idle) {
    EndJob(JobState::kDrained, "", at);
  }
}

std::string MasterCore::FailedText() const {
  constexpr size_t kShownMax = 5;
  const std::vector<ShardId> shards = books_.ledger.queue().FailedShards();
  std::string text =
      fmt::format("{} shard{} FAILED (`muster run --retry-failed` tries again):", shards.size(),
                  shards.size() == 1 ? "" : "s");
  for (size_t i = 0; i < shards.size() && i < kShownMax; ++i) {
    const FailureRecord* record = books_.ledger.FindFailure(shards[i]);
    text += fmt::format(
        "{} {} of dataset '{}': {}", i == 0 ? "" : ";", ToString(shards[i]),
        books_.options.datasets[shards[i].dataset.value()].name,
        record == nullptr || record->reasons.empty() ? "no reason" : record->reasons.back());
  }
  if (shards.size() > kShownMax) text += fmt::format("; and {} more", shards.size() - kShownMax);
  return text;
}

void MasterCore::EndJob(JobState state, std::string_view reason, StepTime at) {
  state_ = state;
  reason_ = ValidUtf8(reason, EventLog::kTextBytesMax);
  leasing_.Close();
  books_.Say(at, "job-ended", "",
             reason_.empty() ? std::string(ToString(state))
                             : fmt::format("{}: {}", ToString(state), reason_));
}

bool MasterCore::Urgent() {
  if (books_.ledger.queue().done().empty() || IsTerminal(state_)) return false;
  if (state_ == JobState::kDraining) return leasing_.table().train_count() == 0;
  if (gate_.too_much_done()) return true;
  if (gate_.too_many_failures()) return leasing_.table().train_count() == 0;
  // A stream has nothing left to lease whenever its topic is slow: that is no end.
  return !books_.ledger.queue().AnyOpen() && leasing_.table().train_count() == 0 &&
         !books_.ledger.queue().Peek().has_value();
}

void MasterCore::ForgiveOwnPause(TimePoint now) {
  // A second of it counts: where every tick comes late, on a slow disk, the dead are found, too.
  const std::chrono::nanoseconds gap = now - ticked_at_ - kPauseMin;
  ticked_at_ = now;
  if (gap.count() <= 0) return;
  const auto later = [&](TimePoint time) { return std::min(time + gap, now); };
  for (auto& [worker, session] : sessions_) session.last_seen = later(session.last_seen);
  leasing_.Forgive(gap, now);
  books_.nodes.Forgive(gap, now);
}

void MasterCore::Tick(StepTime at) {
  now_ = at.now;
  ForgiveOwnPause(at.now);
  if (leasing_.grace().Tick(at.now)) CheckEnd(at);
  TickWorkers(at);
  leasing_.ExpireStuck(at);
  TickServers(at);
  TickDrains(at);
  TickStreams(at);
  leasing_.TellFloor();
  if (drain_began_.has_value() && state_ == JobState::kDraining) {
    const auto waited = at.now - *drain_began_;
    if (waited >= books_.options.drain_timeout && leasing_.table().size() > 0) {
      books_.Say(at, "drain-timeout", "",
                 fmt::format("{} leases ended: their shards run again on resume",
                             leasing_.table().size()));
      leasing_.EndAll();
    }
    // Without servers nothing can be snapshotted; what is DONE runs again on resume.
    if (waited >= 2 * books_.options.drain_timeout && !books_.ledger.queue().done().empty()) {
      EndJob(JobState::kDrained, "", at);
    }
    CheckEnd(at);
  }
}

MetaRecord MasterCore::Meta() const {
  MetaRecord meta;
  meta.incarnation = books_.incarnation;
  meta.done_seq = books_.ledger.done_seq();
  meta.commit_seq = books_.ledger.commit_seq();
  meta.map_version = books_.partitions.version();
  meta.restore_epoch = books_.partitions.restore_epoch();
  meta.newest_server_incarnation = newest_server_;
  meta.state = state_;
  meta.reason = reason_;
  meta.run_id = books_.options.run_id;
  meta.totals = books_.totals;
  meta.snapshot_directory = books_.options.snapshot_directory;
  return meta;
}

std::vector<Mutation> MasterCore::TakeMutations() {
  std::vector<Mutation> mutations;
  books_.ledger.Collect(&mutations);
  books_.partitions.Collect(&mutations);
  books_.nodes.Collect(&mutations);
  tables_.Collect(&mutations);
  books_.events.Collect(&mutations);
  MetaRecord meta = Meta();
  if (collected_.has_value() && now_ - meta_at_ < kTotalsInterval) {
    meta.totals = collected_->totals;
  }
  if (mutations.empty() && meta == collected_) return mutations;
  meta.totals = books_.totals;
  meta_at_ = now_;
  collected_ = meta;
  mutations.push_back(std::move(meta));
  return mutations;
}

}  // namespace muster
