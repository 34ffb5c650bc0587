#include "master/core/workers/leasing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/words/parts.h"

namespace muster {
namespace {

/// How soon a worker without work asks again.
constexpr std::chrono::milliseconds kWaitInterval{100};

/// Tokens in order, for Contains.
std::vector<LeaseToken> InOrder(std::vector<LeaseToken> tokens) {
  // Workers list theirs in order.
  if (!std::ranges::is_sorted(tokens)) std::ranges::sort(tokens);
  return tokens;
}

bool Contains(const std::vector<LeaseToken>& in_order, LeaseToken token) {
  return std::ranges::binary_search(in_order, token);
}

/// The leases that the worker lists.
std::vector<LeaseToken> HeldIn(const WorkerExchangeRequest& request) {
  std::vector<LeaseToken> tokens;
  tokens.reserve(request.held.size());
  for (const HeldLease& held : request.held) tokens.push_back(held.token);
  return InOrder(std::move(tokens));
}

/// All tokens in its call, held or not.
std::vector<LeaseToken> ListedIn(const WorkerExchangeRequest& request) {
  std::vector<LeaseToken> tokens = HeldIn(request);
  for (const DoneReport& done : request.done) tokens.push_back(done.token);
  for (const ReturnedLease& returned : request.returned) tokens.push_back(returned.token);
  return InOrder(std::move(tokens));
}

std::vector<uint64_t> EpochShards(const std::vector<DatasetPlan>& plan) {
  std::vector<uint64_t> shards;
  for (const DatasetPlan& dataset : plan) {
    shards.push_back(dataset.stream.has_value() ? 0 : dataset.shards);
  }
  return shards;
}

}  // namespace

Leasing::Leasing(const Books* books, Ledger* ledger, JobTotals* totals, Failures* failures,
                 Forgetting::Shards committed)
    : books_(books),
      ledger_(ledger),
      totals_(totals),
      failures_(failures),
      forgetting_(books->incarnation, std::move(committed), EpochShards(books->ledger.plan())) {}

LeaseToken Leasing::NextToken() const {
  // A token never repeats over restarts of the master.
  return {books_->incarnation, token_count_ + 1};
}

LeaseToken Leasing::Floor() const {
  const std::optional<LeaseToken> oldest = table_.OldestTrain();
  return oldest.has_value() ? *oldest : NextToken();
}

std::optional<LeaseToken> Leasing::FloorToTell() const {
  if (grace_.on()) return std::nullopt;
  return books_->options.group.has_value() ? floor_of_steps_ : Floor();
}

LeaseToken Leasing::NewToken() {
  const LeaseToken token = NextToken();
  ++token_count_;
  return token;
}

void Leasing::TellFloor() {
  const std::optional<LeaseToken> floor = FloorToTell();
  if (floor.has_value()) forgetting_.Update(*floor);
}

void Leasing::Join(const WorkerKey& worker, TimePoint now) {
  MUSTER_CHECK_MSG(holders_.try_emplace(worker, Holder{.progress_at = now}).second, worker.name);
}

void Leasing::Leave(const WorkerKey& worker) {
  MUSTER_CHECK_MSG(table_.CountOf(worker) == 0, worker.name);
  MUSTER_CHECK_MSG(holders_.erase(worker) == 1, worker.name);
}

bool Leasing::MayReassert(const HeldLease& held) const {
  if (!books_->ledger.queue().Valid(held.shard)) return false;
  // An evaluation may have begun before some of its training was replayed. The journal does not
  // record that.
  const bool outdated = books_->ledger.IsEvaluate(held.shard) &&
                        held.restore_epoch < books_->partitions.restore_epoch();
  const bool of_before = grace_.on() && held.token.incarnation() < books_->incarnation;
  return of_before && !outdated;
}

Lease* Leasing::Reassert(const HeldLease& held, const WorkerKey& worker, StepTime at) {
  return MayReassert(held) ? Adopt(held, worker, at) : nullptr;
}

Lease* Leasing::Adopt(const HeldLease& held, const WorkerKey& worker, StepTime at) {
  if (closed_ || held.token == LeaseToken() || table_.Find(held.token) != nullptr) return nullptr;
  const Ledger& ledger = books_->ledger;
  const Lease* const other = table_.FindShard(held.shard);
  if (other != nullptr ? other->token > held.token
                       : ledger.queue().StateOf(held.shard) != ShardState::kTodo) {
    return nullptr;
  }
  if (other != nullptr) End(other->token, EndCause::kDropped);
  ledger_->queue().Take(held.shard);
  Begin({held.shard, held.token, worker, held.restore_epoch, ledger.IsEvaluate(held.shard), at.now,
         held.phase, held.minibatches_started, at.now, held.run});
  ++totals_->reasserted_leases;
  return table_.Find(held.token);
}

void Leasing::Begin(Lease lease) {
  const ShardId shard = lease.shard;
  const LeaseToken token = lease.token;
  MUSTER_CHECK_MSG(!closed_, ToString(shard));
  MUSTER_CHECK_MSG(books_->ledger.queue().StateOf(shard) == ShardState::kLeased, ToString(shard));
  const bool evaluate = lease.evaluate;
  MUSTER_CHECK_MSG(evaluate == books_->ledger.IsEvaluate(shard), ToString(shard));
  table_.Add(std::move(lease));
  if (evaluate) return;
  // Partitions refuse tokens below the floor, so they would drop all parts of such a lease.
  MUSTER_CHECK_MSG(token >= forgetting_.state().floor, ToString(token));
  forgetting_.OnLeased(shard, token);
}

void Leasing::Update(const HeldLease& held, const Lease& lease, TimePoint now) {
  // All runs except the first consist of minibatches that were handed out before.
  const uint32_t before = lease.run == held.run ? lease.minibatches_started : 0;
  if (held.run > RunNumber() && held.minibatches_started > before) {
    totals_->redelivered_minibatches += held.minibatches_started - before;
  }
  if (table_.Update(held, now)) holders_.at(lease.worker).progress_at = now;
}

void Leasing::TakeHeld(const WorkerExchangeRequest& request, const WorkerKey& worker, StepTime at,
                       std::vector<LeaseToken>* lost) {
  Holder& holder = holders_.at(worker);
  const std::vector<LeaseToken> listed = ListedIn(request);
  for (const HeldLease& held : request.held) {
    const Lease* const lease = table_.Find(held.token);
    if (lease != nullptr && lease->worker == worker && lease->shard == held.shard) {
      Update(held, *lease, at.now);
      continue;
    }
    if (holder.accepted.contains(held.token)) continue;
    if (!books_->ledger.queue().Valid(held.shard)) {
      lost->push_back(held.token);
      continue;
    }
    const std::optional<DoneShard> done = books_->ledger.queue().FindDone(held.shard);
    if (done.has_value() && done->token == held.token) continue;
    if (Reassert(held, worker, at) == nullptr) lost->push_back(held.token);
  }
  absl::erase_if(holder.accepted, [&](LeaseToken token) { return !Contains(listed, token); });
  // The worker has seen the grant but does not list it, so the lease has ended.
  for (LeaseToken token : table_.TokensOf(worker)) {
    if (token <= request.newest_grant && !Contains(listed, token)) End(token, EndCause::kDropped);
  }
}

std::optional<std::string> Leasing::TakeReturned(const WorkerExchangeRequest& request,
                                                 const WorkerKey& worker, JobDirective directive,
                                                 StepTime at) {
  for (const ReturnedLease& returned : request.returned) {
    const Lease* lease = table_.Find(returned.token);
    if (lease == nullptr) {
      const HeldLease held{returned.shard,
                           returned.token,
                           books_->partitions.restore_epoch(),
                           {},
                           LeasePhase::kComputing,
                           0};
      lease = Reassert(held, worker, at);
    }
    if (lease == nullptr || lease->worker != worker || lease->shard != returned.shard) continue;
    holders_.at(worker).progress_at = at.now;
    if (returned.failed) {
      End(returned.token, EndCause::kTrainerFailure);
      if (returned.fatal) return fmt::format("{}: {}", worker.name, returned.reason);
      failures_->Charge(returned.token, {returned.shard, worker}, returned.reason, at);
      continue;
    }
    End(returned.token, EndCause::kReturned);
    TellShortage(returned, worker, at);
    // The worker may have been told to leave without knowing it yet.
    if (returned.hand_back == HandBack::kByTrainer && directive == JobDirective::kWork) {
      failures_->HandedBack(returned, worker, at);
    }
  }
  return std::nullopt;
}

void Leasing::TellShortage(const ReturnedLease& returned, const WorkerKey& worker, StepTime at) {
  if (returned.hand_back != HandBack::kShortage) return;
  if (std::exchange(holders_.at(worker).shortage_told, true)) return;
  books_->Say(at, "shard-handed-back", worker.name,
              fmt::format("shard {} of dataset '{}' goes to another worker, and no failure is "
                          "counted: {} (reported once until this worker finishes a shard)",
                          ToString(returned.shard), books_->NameOf(returned.shard.dataset),
                          returned.reason));
}

void Leasing::Grant(const WorkerExchangeRequest& request, const WorkerKey& worker,
                    Allowance allowance, StepTime at, WorkerExchangeReply* reply) {
  // A grant whose answer never arrived is repeated with the same token. Otherwise, it would only
  // grow old.
  const std::vector<LeaseToken> held = HeldIn(request);
  const uint32_t want = std::min({request.want, allowance.shards, kGrantsPerCallMax});
  const RestoreEpoch restore_epoch = books_->partitions.restore_epoch();
  for (LeaseToken token : table_.TokensOf(worker)) {
    if (token <= request.newest_grant || Contains(held, token)) continue;
    if (reply->grants.size() >= want) {
      End(token, EndCause::kDropped);
      continue;
    }
    Lease* lease = table_.Find(token);
    lease->restore_epoch = restore_epoch;
    reply->grants.push_back({lease->shard, token, restore_epoch, WorkOf(lease->shard)});
  }
  while (allowance.with_new && !grace_.on() && reply->grants.size() < want && MayHoldMore(worker)) {
    const std::optional<ShardId> shard = ledger_->queue().TakeNext();
    if (!shard.has_value()) break;
    // Rule 2.1.
    const LeaseToken token = NewToken();
    // A push with an older token of the shard would count as one with this token.
    MUSTER_CHECK_MSG(table_.leases().empty() || table_.leases().rbegin()->first < token,
                     ToString(token));
    Begin({*shard,
           token,
           worker,
           restore_epoch,
           books_->ledger.IsEvaluate(*shard),
           at.now,
           LeasePhase::kQueued,
           0,
           at.now,
           {}});
    reply->grants.push_back({*shard, token, restore_epoch, WorkOf(*shard)});
    holders_.at(worker).progress_at = at.now;
  }
  if (want > 0 && reply->grants.empty()) {
    reply->heartbeat_interval = std::min(reply->heartbeat_interval, kWaitInterval);
  }
}

bool Leasing::MayHoldMore(const WorkerKey& worker) const {
  const size_t held = table_.CountOf(worker);
  if (held == 0 || holders_.size() == 1) return true;
  return held < DivideUp(ledger_->queue().LeftBeforeWait(), 2 * holders_.size());
}

ShardWork Leasing::WorkOf(const ShardId& shard) const {
  ShardWork work;
  const DatasetPlan& plan = books_->options.datasets[shard.dataset.value()];
  const StreamShard* cut = books_->ledger.streams().Find(shard);
  if (cut == nullptr) {
    MUSTER_CHECK(!plan.stream.has_value());
    return work;  // of a layout: the shell adds the rest
  }
  work.dataset_name = plan.name;
  work.mode = plan.mode;
  work.record_count = books_->ledger.RecordsOf(shard);
  work.minibatch_size = plan.minibatch_size;
  work.minibatch_count = books_->ledger.MinibatchesOf(shard);
  work.first_step = cut->first_step;
  work.stream = {plan.stream->topic, cut->ranges};
  return work;
}

bool Leasing::WasAccepted(const DoneReport& done, const WorkerKey& worker) const {
  const std::optional<DoneShard> before = books_->ledger.queue().FindDone(done.shard);
  return (before.has_value() && before->token == done.token) ||
         holders_.at(worker).accepted.contains(done.token);
}

const Lease* Leasing::LeaseOfDone(const DoneReport& done, const WorkerKey& worker, StepTime at) {
  const Lease* lease = table_.Find(done.token);
  if (lease == nullptr) {
    const HeldLease held{done.shard, done.token,           done.restore_epoch,
                         done.run,   LeasePhase::kPushing, 0};
    lease = Reassert(held, worker, at);
  }
  const bool its_own = lease != nullptr && lease->shard == done.shard && lease->worker == worker;
  return its_own ? lease : nullptr;
}

void Leasing::Reverify(LeaseToken token, TimePoint now) {
  Lease* const lease = table_.Find(token);
  MUSTER_CHECK(lease != nullptr && !lease->evaluate);
  if (lease->restore_epoch >= books_->partitions.restore_epoch()) return;
  ++totals_->reverified_runs;
  lease->restore_epoch = books_->partitions.restore_epoch();
  lease->progress_at = holders_.at(lease->worker).progress_at = now;
}

void Leasing::Finish(LeaseToken token, TimePoint now) {
  const Lease lease = table_.Remove(token);
  Holder& holder = holders_.at(lease.worker);
  holder.progress_at = now;
  holder.shortage_told = false;
  holder.accepted.insert(token);
  failures_->Settle(lease.shard);
}

void Leasing::End(LeaseToken token, EndCause cause) {
  const Lease lease = table_.Remove(token);
  ledger_->queue().Return(lease.shard);
  totals_->redelivered_minibatches += lease.minibatches_started;
  if (cause == EndCause::kNodeFailure && lease.phase != LeasePhase::kQueued) {
    ledger_->CountNodeFailure(lease.shard);
  }
  failures_->Remember(token, {lease.shard, lease.worker});
}

void Leasing::EndOf(const WorkerKey& worker, EndCause cause) {
  for (LeaseToken token : table_.TokensOf(worker)) End(token, cause);
}

void Leasing::EndAll() {
  while (table_.size() > 0) End(table_.leases().begin()->first, EndCause::kDropped);
}

void Leasing::Close() {
  EndAll();
  MUSTER_CHECK(books_->ledger.queue().leased_count() == 0);
  closed_ = true;
}

size_t Leasing::EndOutdatedEvaluations(const std::vector<DoneShard>& replayed) {
  std::optional<EpochIndex> first;
  for (const DoneShard& done : replayed) {
    // What judges weights of this epoch, or of a later one, judges weights that lack something.
    if (books_->ledger.IsEvaluate(done.shard)) continue;
    first = std::min(first.value_or(done.shard.epoch), done.shard.epoch);
  }
  std::vector<LeaseToken> outdated;
  for (const auto& [token, lease] : table_.leases()) {
    if (lease.evaluate && first.has_value() &&  // Rule 13.1.
        books_->ledger.queue().TrainingEpochOf(lease.shard) >= *first) {
      outdated.push_back(token);
    }
  }
  for (const LeaseToken token : outdated) End(token, EndCause::kDropped);
  return outdated.size();
}

void Leasing::ExpireStuck(StepTime at) {
  const std::chrono::milliseconds max_age = books_->options.leases.max_age;
  const TimePoint then = at.now - max_age;
  std::vector<LeaseToken> stuck = table_.BegunWithoutProgressSince(then);
  // A shard that a worker has not begun waits for its turn. It is stuck only if the worker is.
  for (const auto& [worker, holder] : holders_) {
    if (holder.progress_at > then) continue;
    for (LeaseToken token : table_.TokensOf(worker)) {
      if (table_.Find(token)->phase == LeasePhase::kQueued) stuck.push_back(token);
    }
  }
  std::map<std::string, std::vector<ShardId>> by_worker;
  for (LeaseToken token : stuck) {
    const Lease& lease = *table_.Find(token);
    by_worker[lease.worker.name].push_back(lease.shard);
    ++totals_->expired_leases;
    End(token, EndCause::kNodeFailure);
  }
  for (const auto& [name, shards] : by_worker) {
    books_->Say(
        at, "lease-expired", name,
        fmt::format("no progress for {} ms (spec.leases.maxAge) on {}, {} first", max_age.count(),
                    CountText(shards.size(), "shard"), ToString(shards.front())));
  }
}

std::optional<Failures::Run> Leasing::RunOf(LeaseToken token, const std::string& worker,
                                            uint32_t minibatches_started) {
  if (Lease* const lease = table_.Find(token); lease != nullptr) {
    if (lease->worker.name != worker) return std::nullopt;
    lease->minibatches_started = minibatches_started;
    return Failures::Run{lease->shard, lease->worker};
  }
  const Failures::Run* const ended = failures_->Find(token);
  return ended == nullptr ? std::nullopt : std::optional(*ended);
}

void Leasing::OnRestored(TimePoint now) {
  forgetting_.OnRestored();
  table_.OnRestored(now);
}

void Leasing::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  for (auto& [worker, holder] : holders_) {
    holder.progress_at = std::min(holder.progress_at + gap, now);
  }
  table_.Forgive(gap, now);
  grace_.Forgive(gap);
}

}  // namespace muster
