#include "master/core/master_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr uint32_t kRejectEventsMax = 100;
/// Ticks come every 50 ms or so; this long without one, the process stood still.
constexpr std::chrono::seconds kPauseMin{1};
constexpr std::string_view kRecordRejected = "record-rejected";

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

/// `floor`, or lower: at rest in the grace period, later it moves on in steps.
[[maybe_unused]] LeaseToken LowFloor(bool grace, MasterIncarnation incarnation, LeaseToken floor,
                                     size_t leases) {
  constexpr uint64_t kStep = 32;
  if (grace) return {MasterIncarnation(incarnation.value() - 1), 1};
  if (leases == 0) return floor;
  return {floor.incarnation(), (floor.count() - 1) / kStep * kStep + 1};
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
    : options_(std::move(options)),
      incarnation_(incarnation),
      started_at_(at.now),
      ledger_(options_.datasets, state, options_.limits.metric_names),
      partitions_(options_.partitions, incarnation_, state, at.now),
      forgetting_(incarnation_, CommittedTraining(options_, state)),
      gate_(options_.limits),
      nodes_(std::move(state.nodes), options_.limits.nodes),
      events_(std::move(state.events)),
      tables_(std::move(state.tables)),
      meta_at_(at.now),
      now_(at.now),
      ticked_at_(at.now) {
  if (!state.meta.has_value()) return;
  totals_ = state.meta->totals;
  if (!MUSTER_PLANTED(kServersAgain)) newest_server_ = state.meta->newest_server_incarnation;
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
  new_run_ = !state.meta.has_value() || state.meta->run_id != options_.run_id;
  if (new_run_) {
    BeginRun(at);
  } else {
    state_ = state.meta->state;
    reason_ = state.meta->reason;
    ++totals_.master_restarts;
    grace_ = true;
    grace_ends_ = at.now + options_.leases.grace_period;
    for (const auto& [name, node] : nodes_.nodes()) {
      if (node.record.role == kRoleWorker && node.record.state == "running") awaited_.insert(name);
    }
    if (state_ == JobState::kDraining) drain_began_ = at.now;
    AddEvent(at, "master-restarted", "master",
             fmt::format("incarnation {} goes on from the journal: {} of {} shards COMMITTED, {} "
                         "DONE",
                         incarnation_.value(), ledger_.queue().committed_count(),
                         ledger_.queue().shard_count(), ledger_.queue().done().size()));
  }
  for (const auto& [name, node] : nodes_.nodes()) {
    if (node.record.state == "running") nodes_.Find(name)->last_heard = at.now;
  }
  if (options_.retry_failed && new_run_) {
    for (const ShardId& shard : ledger_.queue().FailedShards()) ledger_.Retry(shard);
  }
  TryCommit(at);
  CheckRejects(at);
  CheckLimits(at);
  CheckEnd(at);
}

void MasterCore::BeginRun(StepTime at) {
  nodes_.BeginRun();
  AddEvent(at, "run-started", "",
           fmt::format("incarnation {}: {} of {} shards COMMITTED, {} partitions on {} servers",
                       incarnation_.value(), ledger_.queue().committed_count(),
                       ledger_.queue().shard_count(), options_.partitions, options_.servers));
  Replay(partitions_.BeginRun(options_.servers), "a new run began", at);
}

void MasterCore::Replay(const PartitionTable::Restored& restored, const std::string& why,
                        StepTime at) {
  if (restored.partitions == 0) return;
  MetaChanged();
  forgetting_.OnRestored();
  leases_.OnRestored(at.now);
  const std::vector<DoneShard> shards =
      ledger_.ReplayAfter(MUSTER_PLANTED(kNoReplay) ? ledger_.done_seq() : restored.replay_after);
  totals_.replayed_shards += shards.size();
  for (const DoneShard& done : shards) {
    totals_.redelivered_minibatches += ledger_.MinibatchesOf(done.shard);
  }
  const size_t evaluations = EndOutdatedEvaluations(shards);
  AddEvent(at, "partitions-restored", "",
           fmt::format("{}: {} partitions {}, {} DONE shards run again{} (restore epoch {})", why,
                       restored.partitions,
                       totals_.snapshots_accepted == 0 ? "start with no snapshot yet"
                                                       : "come back from their snapshots",
                       shards.size(),
                       evaluations == 0
                           ? ""
                           : fmt::format(", {} evaluate shard{} afterwards", evaluations,
                                         evaluations == 1 ? " begins again" : "s begin again"),
                       partitions_.restore_epoch().value()));
}

size_t MasterCore::EndOutdatedEvaluations(const std::vector<DoneShard>& replayed) {
  if (replayed.empty() || MUSTER_PLANTED(kEvaluateRolledBack)) return 0;
  const EpochIndex first = std::ranges::min(replayed, {}, [](const DoneShard& done) {
                             return done.shard.epoch;
                           }).shard.epoch;
  std::vector<LeaseToken> outdated;
  for (const auto& [token, lease] : leases_.leases()) {
    if (lease.evaluate && lease.shard.epoch >= first) outdated.push_back(token);
  }
  for (const LeaseToken token : outdated) EndLease(token, EndCause::kDropped);
  return outdated.size();
}

LeaseToken MasterCore::Floor() const {
  const std::optional<LeaseToken> oldest = leases_.OldestTrain();
  return oldest.has_value() ? *oldest : NextToken();
}

void MasterCore::EndLease(LeaseToken token, EndCause cause) {
  const Lease lease = leases_.Remove(token);
  ledger_.queue().Return(lease.shard);
  totals_.redelivered_minibatches += lease.minibatches_started;
  if (cause == EndCause::kNodeFailure && lease.phase != LeasePhase::kQueued) {
    ledger_.CountNodeFailure(lease.shard);
  }
  ended_.emplace(token, Ended{lease.shard, lease.worker});
  if (ended_.size() > options_.limits.ended_leases) ended_.erase(ended_.begin());
}

void MasterCore::EndAllLeases() {
  while (leases_.size() > 0) EndLease(leases_.leases().begin()->first, EndCause::kDropped);
}

void MasterCore::Charge(LeaseToken token, const Ended& lease, std::string_view reason,
                        StepTime at) {
  const auto& [shard, worker] = lease;
  const Ledger::Charged charged = ledger_.ChargeTrainer(
      shard, token, fmt::format("{}: {}", worker.name, reason), options_.leases.failures_max);
  if (charged == Ledger::Charged::kAlready) return;
  const bool failed = charged == Ledger::Charged::kFailed;
  if (failed) hand_backs_.Forget(shard);
  const FailureRecord* record = ledger_.FindFailure(shard);
  AddEvent(
      at, failed ? "shard-failed" : "shard-failure", worker.name,
      fmt::format("shard {} of dataset '{}': failure {} of {}{}: {}", ToString(shard),
                  options_.datasets[shard.dataset.value()].name, record->failures,
                  options_.leases.failures_max, failed ? ", the shard is FAILED" : "", reason));
}

void MasterCore::TryCommit(StepTime at) {
  const DoneSeq cut = partitions_.MinCut();
  if (cut <= ledger_.commit_seq()) return;
  MetaChanged();
  std::set<std::pair<DatasetId, EpochIndex>> epochs;
  for (const Ledger::Committed& committed : ledger_.CommitUpTo(cut)) {
    epochs.insert({committed.done.shard.dataset, committed.done.shard.epoch});
    forgetting_.OnCommitted(committed.done.shard);
    if (Node* node = nodes_.Find(committed.worker)) {
      node->record.records_committed += committed.records;
      nodes_.Touch(*node);
    }
  }
  for (const auto& [dataset, epoch] : epochs) EpochEvent(dataset, epoch, at);
  CheckLimits(at);
  CheckEnd(at);
}

void MasterCore::EpochEvent(DatasetId dataset, EpochIndex epoch, StepTime at) {
  const EpochCounts counts = ledger_.queue().Counts(dataset, epoch);
  if (counts.committed < counts.shards || ledger_.queue().IsOpen(dataset)) return;
  AddEvent(at, "epoch-committed", "",
           fmt::format("epoch {} of dataset '{}': {} shards, {} records", epoch.value(),
                       options_.datasets[dataset.value()].name, counts.shards,
                       ledger_.RecordsCommitted(dataset, epoch)));
}

void MasterCore::TellRejects(const DoneReport& done, const std::string& worker, StepTime at) {
  for (const std::string& sample : done.metrics.reject_samples) {
    if (reject_events_ == kRejectEventsMax) return;
    ++reject_events_;
    AddEvent(
        at, std::string(kRecordRejected), worker,
        reject_events_ < kRejectEventsMax ? sample : sample + " (further ones are only counted)");
  }
}

void MasterCore::CheckRejects(StepTime at) {
  if (IsTerminal(state_) || ledger_.rejected_records() <= options_.rejected_records_max) return;
  const auto& events = events_.events();
  const auto sample = std::find_if(events.rbegin(), events.rend(), [](const auto& event) {
    return event.second.kind == kRecordRejected;
  });
  EndJob(JobState::kFailed,
         fmt::format("{} rejected {}, spec.training.rejectedRecordsMax is {}{}. To go on without "
                     "such records raise the limit and run again; to train with fixed data choose "
                     "another spec.stateDirectory",
                     ledger_.rejected_records(),
                     ledger_.rejected_records() == 1 ? "record" : "records",
                     options_.rejected_records_max,
                     sample == events.rend() ? "" : "; the last: " + sample->second.text),
         at);
}

void MasterCore::CheckLimits(StepTime at) {
  for (const auto& [dataset, epoch] : ledger_.TakeDroppedMetrics()) {
    AddEvent(at, "metrics-dropped", "",
             fmt::format("epoch {} of dataset '{}' has {} metrics, the limit: those with other "
                         "names are dropped",
                         epoch.value(), options_.datasets[dataset.value()].name,
                         options_.limits.metric_names));
  }
  if (IsTerminal(state_)) return;
  if (auto news = gate_.Look(ledger_.done_bytes(), ledger_.failure_bytes()); news.has_value()) {
    AddEvent(at, std::move(news->kind), "", news->text);
  }
}

void MasterCore::CheckEnd(StepTime at) {
  if (IsTerminal(state_)) return;
  const ShardQueue& queue = ledger_.queue();
  const bool all_done =
      queue.committed_count() + queue.failed_count() + queue.done().size() == queue.shard_count();
  if (queue.Finished() || (MUSTER_PLANTED(kEndWhenDone) && all_done)) {
    if (queue.failed_count() == 0) return EndJob(JobState::kSucceeded, "", at);
    return EndJob(JobState::kFailed, FailedText(), at);
  }
  const bool idle = leases_.size() == 0 && queue.done().empty() && !grace_;
  if (gate_.too_many_failures() && state_ == JobState::kRunning && idle) {
    return EndJob(JobState::kFailed, "too many failures to go on: " + FailedText(), at);
  }
  if (state_ == JobState::kDraining && idle) {
    EndJob(JobState::kDrained, "", at);
  }
}

std::string MasterCore::FailedText() const {
  constexpr size_t kShownMax = 5;
  const std::vector<ShardId> shards = ledger_.queue().FailedShards();
  std::string text =
      fmt::format("{} shard{} FAILED (`muster run --retry-failed` tries again):", shards.size(),
                  shards.size() == 1 ? "" : "s");
  for (size_t i = 0; i < shards.size() && i < kShownMax; ++i) {
    const FailureRecord* record = ledger_.FindFailure(shards[i]);
    text += fmt::format(
        "{} {} of dataset '{}': {}", i == 0 ? "" : ";", ToString(shards[i]),
        options_.datasets[shards[i].dataset.value()].name,
        record == nullptr || record->reasons.empty() ? "no reason" : record->reasons.back());
  }
  if (shards.size() > kShownMax) text += fmt::format("; and {} more", shards.size() - kShownMax);
  return text;
}

void MasterCore::EndJob(JobState state, std::string_view reason, StepTime at) {
  state_ = state;
  reason_ = ValidUtf8(reason, EventLog::kTextBytesMax);
  EndAllLeases();
  MetaChanged();
  AddEvent(at, "job-ended", "",
           reason_.empty() ? std::string(ToString(state))
                           : fmt::format("{}: {}", ToString(state), reason_));
}

bool MasterCore::Urgent() {
  if (ledger_.queue().done().empty() || IsTerminal(state_)) return false;
  if (state_ == JobState::kDraining) return leases_.train_count() == 0;
  if (gate_.too_much_done()) return true;
  if (gate_.too_many_failures()) return leases_.train_count() == 0;
  // A stream has nothing left to lease whenever its topic is slow: that is no end.
  return !ledger_.queue().AnyOpen() && leases_.train_count() == 0 &&
         !ledger_.queue().Peek().has_value();
}

void MasterCore::ForgiveOwnPause(TimePoint now) {
  // A second of it counts: where every tick comes late, on a slow disk, the dead are found, too.
  const std::chrono::nanoseconds gap = now - ticked_at_ - kPauseMin;
  ticked_at_ = now;
  if (gap.count() <= 0) return;
  const auto later = [&](TimePoint time) { return std::min(time + gap, now); };
  for (auto& [worker, session] : sessions_) {
    session.last_seen = later(session.last_seen);
    session.progress_at = later(session.progress_at);
  }
  leases_.Forgive(gap, now);
  nodes_.Forgive(gap, now);
  grace_ends_ += gap;
}

void MasterCore::Tick(StepTime at) {
  now_ = at.now;
  ForgiveOwnPause(at.now);
  if (grace_ && (at.now >= grace_ends_ || awaited_.empty())) {
    grace_ = false;
    awaited_.clear();
    CheckEnd(at);
  }
  TickWorkers(at);
  TickServers(at);
  TickDrains(at);
  TickStreams(at);
  if (MUSTER_WEAKENED(kBusyGrace)) {
    forgetting_.Update(LowFloor(grace_, incarnation_, Floor(), leases_.train_count()));
  } else if (!grace_) {
    forgetting_.Update(Floor());
  }
  if (drain_began_.has_value() && state_ == JobState::kDraining) {
    const auto waited = at.now - *drain_began_;
    if (waited >= options_.drain_timeout && leases_.size() > 0) {
      AddEvent(at, "drain-timeout", "",
               fmt::format("{} leases ended: their shards run again on resume", leases_.size()));
      EndAllLeases();
    }
    // Without servers nothing can be snapshotted; what is DONE runs again on resume.
    if (waited >= 2 * options_.drain_timeout && !ledger_.queue().done().empty()) {
      EndJob(JobState::kDrained, "", at);
    }
    CheckEnd(at);
  }
}

MetaRecord MasterCore::Meta() const {
  MetaRecord meta;
  meta.incarnation = incarnation_;
  meta.done_seq = ledger_.done_seq();
  meta.commit_seq = ledger_.commit_seq();
  meta.map_version = partitions_.version();
  meta.restore_epoch = partitions_.restore_epoch();
  meta.newest_server_incarnation = newest_server_;
  meta.state = state_;
  meta.reason = reason_;
  meta.run_id = options_.run_id;
  meta.totals = totals_;
  meta.snapshot_directory = options_.snapshot_directory;
  return meta;
}

std::vector<Mutation> MasterCore::TakeMutations() {
  std::vector<Mutation> mutations;
  ledger_.Collect(&mutations);
  partitions_.Collect(&mutations);
  nodes_.Collect(&mutations);
  for (TableId id : dirty_tables_) mutations.push_back(tables_.at(id));
  dirty_tables_.clear();
  events_.Collect(&mutations);
  const bool totals_due =
      totals_ != totals_collected_ && now_ - meta_at_ >= std::chrono::seconds(1);
  if (mutations.empty() && !meta_dirty_ && !totals_due) return mutations;
  meta_dirty_ = false;
  totals_collected_ = totals_;
  meta_at_ = now_;
  mutations.push_back(Meta());
  return mutations;
}

}  // namespace muster
