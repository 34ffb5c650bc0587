#include "worker_sdk/core/worker_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/backoff.h"
#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

namespace muster::sdk {
namespace {

// News does not wait for the heartbeat, but two calls are at least this far apart.
constexpr std::chrono::milliseconds kUrgentSpacingMin{2};
// The cost of an exchange grows with the number of its leases.
constexpr std::chrono::microseconds kSpacingOfLease{10};
// While parts wait for a newer map, the master is asked this often.
constexpr std::chrono::milliseconds kMapSpacing{20};
constexpr std::chrono::milliseconds kFailureBackoffMin{50};
constexpr std::chrono::milliseconds kFailureBackoffMax{1000};
// Exchanges may follow each other closely. This is how often one includes the figures of servers.
constexpr std::chrono::milliseconds kPeersSpacing{500};
constexpr size_t kReasonBytesMax = 4'000;
// Minibatches asked about at a time.
constexpr size_t kAskedMax = 1'024;

/// A text that says what a run over these minibatches has left out; empty if nothing.
std::string WhatWasNotPushed(const ShardGrant& grant,
                             const std::vector<ConfirmedParts::Minibatch>& lost) {
  if (lost.empty()) return "";
  const std::string others =
      lost.size() == 1 ? "" : fmt::format(" (and {} more like it)", lost.size() - 1);
  return fmt::format(
      "shard {}/{}/{}: minibatch {} ran again, for a server that was restored had lost what it had "
      "pushed to partition {}, and this time it pushed nothing there{}: the last run counts. Its "
      "records have changed in between (a topic was compacted), or the trainer chooses keys by "
      "more than the records",
      grant.work.dataset_name, grant.shard.epoch.value(), grant.shard.index.value(),
      lost.front().minibatch.value(), lost.front().partitions.front().value(), others);
}

}  // namespace

/// Everything that a restore has undone runs again, and nothing else.
std::vector<MinibatchIndex> WorkerCore::ToRunAgain(const Held& held) {
  std::vector<MinibatchIndex> minibatches;
  for (const ConfirmedParts::Minibatch& lost : held.confirmed.Lost()) {
    minibatches.push_back(lost.minibatch);
  }
  return minibatches;
}

/// A done names the R of a map. Without a map of this R, the worker does not know what that restore
/// undid.
bool WorkerCore::KnowsOwnersSince(RestoreEpoch epoch) const {
  return map_ != nullptr && map_->restore_epoch >= epoch;
}

WorkerCore::Held* WorkerCore::Find(LeaseToken token, RunNumber run) {
  auto it = held_.find(token);
  return it == held_.end() || it->second.run != run ? nullptr : &it->second;
}

void WorkerCore::Drop(LeaseToken token) {
  auto it = held_.find(token);
  if (it == held_.end()) return;
  for (DeliveryId id : it->second.outstanding) {
    sender_.Cancel(id);
    MUSTER_CHECK(pushes_.erase(id) == 1);
  }
  if (it->second.phase == LeasePhase::kQueued) {
    const auto queued = std::find(queue_.rbegin(), queue_.rend(), token);
    MUSTER_CHECK(queued != queue_.rend());
    queue_.erase(std::next(queued).base());
  }
  held_.erase(it);
  MUSTER_CHECK(queue_.size() <= held_.size());
}

std::optional<ShardRun> WorkerCore::TakeShard() {
  if (queue_.empty() || ended_) return std::nullopt;
  Held& held = held_.at(queue_.front());
  queue_.pop_front();
  MUSTER_CHECK(held.phase == LeasePhase::kQueued);
  held.phase = LeasePhase::kComputing;
  pace_.Took();
  // Requests more while the held shards still last until they arrive.
  if (queue_.size() <= pace_.goal() / 2) urgent_ = true;
  return ShardRun{held.grant, held.run, ToRunAgain(held)};
}

std::vector<ShardWork> WorkerCore::TakeSoon(size_t most) {
  std::vector<ShardWork> soon;
  for (size_t i = 0; i < std::min(most, queue_.size()); ++i) {
    Held& held = held_.at(queue_[i]);
    if (!std::exchange(held.told, true)) soon.push_back(held.grant.work);
  }
  return soon;
}

bool WorkerCore::SawAllPushes(LeaseToken token, RunNumber run) const {
  const auto held = held_.find(token);
  if (held == held_.end() || !Holds(token, run)) return false;
  // Rule 13.2. An owner that came back from an older state is known from a map with a larger R.
  return map_ == nullptr || map_->restore_epoch <= held->second.grant.restore_epoch;
}

bool WorkerCore::StartMinibatch(LeaseToken token, RunNumber run) {
  Held* held = Find(token, run);
  if (held == nullptr) return false;
  ++held->minibatches_started;
  return true;
}

bool WorkerCore::CommitMinibatch(LeaseToken token, RunNumber run, MinibatchIndex minibatch,
                                 std::shared_ptr<const RowBatch> batch, TimePoint now,
                                 PooledVector<TimePoint> born) {
  Held* held = Find(token, run);
  if (held == nullptr) return false;
  if (batch->plan.parts.empty()) {
    CountDelays(held->grant.shard.dataset, born, now);
    return true;
  }
  PushIdentity push{held->grant.shard,
                    minibatch,
                    token,
                    run,
                    held->grant.work.first_step + minibatch.value(),
                    held->grant.restore_epoch};
  for (const PlanPart& part : batch->plan.parts) held->confirmed.Pushed(part.partition, minibatch);
  held->outstanding.insert(AddPush(push, std::move(batch), std::move(born), now));
  return true;
}

void WorkerCore::BeginStepRun(RunNumber run) {
  if (ended_) run = RunNumber();
  if (step_pushes_.run() == run) return;
  for (const DeliveryId push : step_pushes_.Begin(run)) sender_.Cancel(push);
}

bool WorkerCore::CommitStepMinibatch(const PushIdentity& push,
                                     std::shared_ptr<const RowBatch> batch, TimePoint now) {
  if (!step_pushes_.Is(push.run)) return false;
  if (!batch->plan.parts.empty()) step_pushes_.Add(sender_.AddPush(push, std::move(batch), now));
  return true;
}

DeliveryId WorkerCore::AddPush(const PushIdentity& push, std::shared_ptr<const RowBatch> batch,
                               PooledVector<TimePoint> born, TimePoint now) {
  const DeliveryId id = sender_.AddPush(push, std::move(batch), now);
  const bool fresh = pushes_.try_emplace(id, Push{push.token, std::move(born)}).second;
  MUSTER_CHECK(fresh);
  return id;
}

void WorkerCore::CountDelays(DatasetId dataset, const PooledVector<TimePoint>& born,
                             TimePoint now) {
  if (born.empty()) return;
  DelayHistogram& delays = delays_[dataset];
  for (const TimePoint begin : born) {
    delays.Add(std::chrono::duration_cast<std::chrono::milliseconds>(now - begin));
  }
}

std::string WorkerCore::CompleteShard(LeaseToken token, RunNumber run, ShardMetrics metrics) {
  Held* held = Find(token, run);
  if (held == nullptr) return "";
  MUSTER_CHECK(held->phase == LeasePhase::kComputing && !held->completed);
  held->phase = LeasePhase::kPushing;
  held->completed = true;
  if (run == RunNumber()) held->metrics = std::move(metrics);
  std::string not_pushed = WhatWasNotPushed(held->grant, held->confirmed.Lost());
  held->confirmed.ForgetLost();
  Settle(token);
  return not_pushed;
}

void WorkerCore::GiveUp(LeaseToken token, RunNumber run, std::optional<ShardFailure> failure) {
  if (Find(token, run) != nullptr) Return(token, std::move(failure));
}

void WorkerCore::Return(LeaseToken token, std::optional<ShardFailure> failure) {
  const Held& held = held_.at(token);
  ReturnedLease lease{.shard = held.grant.shard, .token = token};
  lease.hand_back = leaving_ ? HandBack::kUncharged : HandBack::kByTrainer;
  lease.minibatches_started = held.minibatches_started;
  if (failure.has_value()) {
    // The master refuses longer ones.
    lease.reason = ValidUtf8(failure->reason, kReasonBytesMax);
    lease.failed = !failure->shortage;
    lease.fatal = lease.failed && failure->fatal;
    if (failure->shortage) lease.hand_back = HandBack::kShortage;
  }
  HandBackLease(std::move(lease));
  urgent_ = true;
}

void WorkerCore::HandBackLease(ReturnedLease lease) {
  Drop(lease.token);
  returned_.push_back({std::move(lease), false});
}

void WorkerCore::OnReply(const SendRequest& request, std::span<const wire::PartReply> parts,
                         const ReceivedRows& rows, std::string_view text, TimePoint now) {
  PartSender::Outcome outcome = sender_.OnReply(request.id, parts, rows, now);
  if (request.push) Confirm(*request.push, outcome);
  if (outcome.bad_request) return OnBadRequest(request, text);
  if (outcome.stale) {
    Drop(*outcome.stale);
    urgent_ = true;  // the master learns from its absence that the lease has ended
    return;
  }
  if (!outcome.finished) return;
  step_pushes_.Finished(*outcome.finished);
  auto push = pushes_.find(*outcome.finished);
  if (push == pushes_.end()) return;
  Held& held = held_.at(push->second.token);
  MUSTER_CHECK(held.outstanding.erase(*outcome.finished) == 1);
  CountDelays(held.grant.shard.dataset, push->second.born, now);
  const LeaseToken token = push->second.token;
  pushes_.erase(push);
  Settle(token);
}

void WorkerCore::Confirm(const PushIdentity& push, const PartSender::Outcome& outcome) {
  if (step_pushes_.Is(push.run)) return step_pushes_.Confirm(outcome.parts);
  const auto found = held_.find(push.token);
  if (found == held_.end()) return;
  Held& held = found->second;
  // A later run has pushed minibatches of the first one again, and its metrics do not count.
  if (outcome.was_in_rows && push.run == RunNumber()) ++held.pushed_before;
  for (const PartAnswer& part : outcome.parts) {
    if (part.in_rows) {
      held.confirmed.Add(part.partition, push.minibatch, part.sent_under);
    } else {
      held.confirmed.Lose(part.partition, push.minibatch, part.sent_under);
    }
  }
}

void WorkerCore::TakeMap(PartitionMap map, TimePoint now) {
  wants_whole_map_ = false;
  if (map_ && map.version <= map_->version) return;
  map_ = std::make_shared<const PartitionMap>(std::move(map));
  sender_.SetMap(map_, now);
  std::vector<LeaseToken> tokens;
  for (auto& [token, held] : held_) {
    held.confirmed.TakeMap(*map_);
    tokens.push_back(token);
  }
  for (const LeaseToken token : tokens) Settle(token);
}

void WorkerCore::TakeChanges(const PartitionMapChanges& changes, TimePoint now) {
  if (map_ && changes.version <= map_->version) return;  // from an outdated answer
  std::optional<PartitionMap> after;
  // Changes of an older map are all that this one lacks.
  if (map_ && changes.base <= map_->version) after = WithChanges(*map_, changes);
  if (after.has_value()) return TakeMap(*std::move(after), now);
  wants_whole_map_ = urgent_ = true;
}

void WorkerCore::Settle(LeaseToken token) {
  Held& held = held_.at(token);
  held.settled_under.reset();
  // A done is reported when no part of the shard is pending.
  if (!held.completed || !held.outstanding.empty()) return;
  RestoreEpoch under = held.grant.restore_epoch;
  if (held.grant.work.mode == DatasetMode::kTrain) {
    if (!KnowsOwnersSince(under)) return;
    // Rule 2.3.
    const std::vector<ConfirmedParts::Minibatch> doubted = held.confirmed.Doubted(kAskedMax);
    if (!doubted.empty()) {
      for (const ConfirmedParts::Minibatch& minibatch : doubted) Ask(token, minibatch);
      return;
    }
    if (!held.confirmed.Lost().empty()) return RunAgain(token);
    under = std::max(under, map_->restore_epoch);
    MUSTER_CHECK(under == map_->restore_epoch);
  }
  MUSTER_CHECK(held.outstanding.empty());
  held.settled_under = under;
  held.metrics.minibatches_again = held.pushed_before;
  urgent_ = true;
}

void WorkerCore::Ask(LeaseToken token, const ConfirmedParts::Minibatch& doubted) {
  Held& held = held_.at(token);
  auto question = MakePooled<RowBatch>();
  for (const PartitionId partition : doubted.partitions) {
    question->plan.parts.push_back({.partition = partition});
  }
  const PushIdentity push{held.grant.shard, doubted.minibatch, token,
                          held.run,         /*step=*/0,        held.grant.restore_epoch};
  held.outstanding.insert(AddPush(push, std::move(question), {}, last_exchange_));
}

void WorkerCore::RunAgain(LeaseToken token) {
  Held& held = held_.at(token);
  MUSTER_CHECK(held.completed && held.outstanding.empty());
  MUSTER_CHECK(held.phase == LeasePhase::kPushing && !held.done());
  held.run = held.run.Next();
  held.phase = LeasePhase::kQueued;
  held.completed = false;
  held.minibatches_started = 0;
  queue_.push_front(token);
  urgent_ = true;
  if (leaving_) Return(token);
}

void WorkerCore::OnBadRequest(const SendRequest& request, std::string_view text) {
  std::string reason =
      fmt::format("ps-{} refused a {} of this worker: {}", request.lane.server.value(),
                  request.push ? "push" : "pull", text);
  const bool leased = request.push && Find(request.push->token, request.push->run) != nullptr;
  if (leased) return Return(request.push->token, ShardFailure{std::move(reason)});
  const bool of_step = request.push && step_pushes_.Is(request.push->run);
  if ((!request.push || of_step) && failure_.empty()) failure_ = std::move(reason);
}

void WorkerCore::OnRefused(const SendRequest& request, std::string_view text, TimePoint now) {
  if (sender_.OnRefused(request.id, now)) OnBadRequest(request, text);
}

void WorkerCore::ReturnSurplus() {
  const size_t most = std::max(pace_.most(), waiting_loops_);
  while (queue_.size() > most) {
    const Held& newest = held_.at(queue_.back());
    // A shard that runs again already has parts in the rows, so it is taken next.
    if (newest.run > RunNumber()) return;
    ReturnedLease lease{.shard = newest.grant.shard, .token = queue_.back()};
    lease.hand_back = HandBack::kUncharged;
    HandBackLease(std::move(lease));
  }
}

uint32_t WorkerCore::Wanted(TimePoint now) const {
  if (leaving_ || ended_ || now < rest_until_) return 0;
  const size_t goal = std::max(pace_.goal(), waiting_loops_);
  return static_cast<uint32_t>(goal - std::min(goal, queue_.size()));
}

std::chrono::nanoseconds WorkerCore::UrgentSpacing() const {
  return std::max<std::chrono::nanoseconds>(kUrgentSpacingMin, held_.size() * kSpacingOfLease);
}

TimePoint WorkerCore::NextExchange(TimePoint now) const {
  if (exchanging_ || ended_) return TimePoint::max();
  if (sequence_ == 0) return now;
  if (failures_ > 0) {
    const auto backoff = std::chrono::duration_cast<std::chrono::milliseconds>(
        PauseAfter(failures_, {.first = kFailureBackoffMin, .longest = kFailureBackoffMax}));
    // Adds up to a quarter, so that workers do not come back to a restarted master at the same
    // time. It follows from the worker and the failure, because the core has no generator.
    uint64_t jitter =
        Mix64(options_.incarnation + failures_) % static_cast<uint64_t>(backoff.count() / 4);
    return last_exchange_ + backoff + std::chrono::milliseconds(jitter);
  }
  TimePoint next = last_exchange_ + options_.heartbeat_interval;
  if (urgent_) next = std::min(next, last_exchange_ + UrgentSpacing());
  if (sender_.wants_map()) next = std::min(next, last_exchange_ + kMapSpacing);
  return next;
}

WorkerExchangeRequest WorkerCore::BeginExchange(const WorkerTimes& times, TimePoint now) {
  MUSTER_CHECK(!exchanging_);
  exchanging_ = true;
  urgent_ = false;
  last_exchange_ = now;
  pace_.Exchanging(now);
  ReturnSurplus();
  WorkerExchangeRequest request;
  request.worker = options_.worker;
  request.incarnation = options_.incarnation;
  request.sequence = ++sequence_;
  if (map_) request.map_version = map_->version;
  if (!wants_whole_map_) request.map_base = request.map_version;
  request.newest_grant = newest_grant_;
  for (const auto& [token, held] : held_) {
    request.held.push_back({held.grant.shard, token, held.grant.restore_epoch, held.run, held.phase,
                            held.minibatches_started});
    if (held.done()) {
      MUSTER_CHECK(held.completed && held.outstanding.empty());
      request.done.push_back(
          {held.grant.shard, token, *held.settled_under, held.run, held.metrics});
    }
  }
  for (Returned& returned : returned_) {
    returned.told = true;
    request.returned.push_back(returned.lease);
  }
  request.want = Wanted(now);
  request.times = times;
  for (const auto& [dataset, delays] : delays_) {
    if (request.delays.size() < kDelaysPerCallMax) request.delays.push_back({dataset, delays});
  }
  if (now >= peers_due_) {
    request.peers = sender_.Peers(newest_peer_, kPeersPerCallMax);
    if (!request.peers.empty()) {
      peers_due_ = now + kPeersSpacing;
      newest_peer_ = request.peers.back().server;
    }
  }
  return request;
}

void WorkerCore::OnExchangeFailed(TimePoint now) {
  MUSTER_CHECK(exchanging_);
  exchanging_ = false;
  ++failures_;
  last_exchange_ = now;
}

void WorkerCore::OnExchangeReply(const WorkerExchangeReply& reply, TimePoint now) {
  MUSTER_CHECK(exchanging_);
  // Rule 11.4.
  if (reply.master_incarnation < master_) {  // a master that has been replaced
    OnExchangeFailed(now);
    return;
  }
  exchanging_ = false;
  pace_.Answered(now);
  failures_ = 0;
  master_ = reply.master_incarnation;
  if (reply.heartbeat_interval.count() > 0) options_.heartbeat_interval = reply.heartbeat_interval;
  std::erase_if(returned_, [](const Returned& returned) { return returned.told; });
  sender_.MapAnswered();
  for (LeaseToken token : reply.lost) Drop(token);
  for (const DoneVerdict& verdict : reply.verdicts) OnVerdict(verdict);
  if (reply.map) TakeMap(*reply.map, now);
  if (reply.map_changes) TakeChanges(*reply.map_changes, now);
  LeaseToken newest = newest_grant_;
  for (const ShardGrant& grant : reply.grants) {
    if (grant.token > newest_grant_) OnGrant(grant);
    newest = std::max(newest, grant.token);
  }
  newest_grant_ = newest;
  if (reply.directive == JobDirective::kDrain) Leave();
  if (reply.directive == JobDirective::kEnd) {
    ended_ = true;
    leaving_ = true;
    while (!held_.empty()) Drop(held_.begin()->first);
    BeginStepRun(RunNumber());
    returned_.clear();
  }
}

void WorkerCore::OnVerdict(const DoneVerdict& verdict) {
  Held* held = Find(verdict.token, verdict.run);
  if (held == nullptr || !held->completed) return;
  if (verdict.code != DoneCode::kReverify) {
    Drop(verdict.token);
    return;
  }
  // Since the map under which the run was settled, a partition came back from an older state.
  held->grant.restore_epoch = std::max(held->grant.restore_epoch, verdict.restore_epoch);
  Settle(verdict.token);
}

void WorkerCore::OnGrant(const ShardGrant& grant) {
  auto [it, inserted] = held_.try_emplace(grant.token);
  if (!inserted) return;
  it->second.grant = grant;
  if (map_) it->second.confirmed.TakeMap(*map_);
  queue_.push_back(grant.token);
  if (leaving_) Return(grant.token);
}

void WorkerCore::Leave() {
  // Every answer says this while the job drains. Only the first one requires a report to the
  // master.
  if (leaving_ && queue_.empty()) return;
  leaving_ = true;
  while (!queue_.empty()) Return(queue_.back());
  urgent_ = true;
}

std::vector<LeaseToken> WorkerCore::EndLoops() {
  Leave();
  std::vector<LeaseToken> tokens;
  for (const auto& [token, held] : held_) {
    if (held.phase == LeasePhase::kComputing) tokens.push_back(token);
  }
  for (LeaseToken token : tokens) Return(token);
  return tokens;
}

void WorkerCore::Abandon() {
  EndLoops();
  std::vector<LeaseToken> tokens;
  for (const auto& [token, held] : held_) {
    if (!held.done()) tokens.push_back(token);
  }
  for (LeaseToken token : tokens) Return(token);
}

}  // namespace muster::sdk
