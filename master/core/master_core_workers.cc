// The worker's side of MasterCore: sessions, leases, dones.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "master/core/master_core.h"

namespace muster {
namespace {

/// A worker that waits for work asks again this soon.
constexpr std::chrono::milliseconds kWaitInterval{100};

}  // namespace

absl::Status MasterCore::HelloWorker(const WorkerKey& worker, StartNumber start, StepTime at) {
  now_ = at.now;
  Node* node = books_.nodes.FindOrAdd(worker.name, kRoleWorker, leases_);
  if (node == nullptr || node->record.role != kRoleWorker) {
    return absl::ResourceExhaustedError(
        node == nullptr
            ? fmt::format("worker '{}': the job has {} nodes that have not ended, the limit",
                          worker.name, books_.options.limits.nodes)
            : fmt::format("worker '{}': a {} has this name", worker.name, node->record.role));
  }
  MUSTER_RETURN_IF_ERROR(CheckNotReplaced(node->record, start));
  if (!sessions_.contains(worker)) {
    for (auto& [key, session] : sessions_) {
      if (key.name != worker.name || session.superseded) continue;
      session.superseded = true;
      EndLeasesOf(key, EndCause::kNodeFailure);
    }
    books_.Say(at, "worker-joined", worker.name, "");
    node->times = {};
    node->drain = {};
  }
  node->record.incarnation = worker.incarnation;
  books_.nodes.KeepStart(node, start);
  TouchSession(worker, at);
  books_.nodes.Touch(*node);
  WorkerHeard(worker, nullptr, at);
  CheckEnd(at);
  return absl::OkStatus();
}

MasterCore::Session& MasterCore::TouchSession(const WorkerKey& worker, StepTime at) {
  const auto [it, added] = sessions_.try_emplace(worker);
  Session& session = it->second;
  if (added) session.progress_at = at.now;
  // After a restart of the master the journal knows who began last: a Hello comes before
  // everything.
  const Node* node = books_.nodes.Find(worker.name);
  if (node != nullptr && node->record.incarnation == worker.incarnation) {
    session.start = node->record.start;
  } else if (added && node != nullptr && node->record.start != StartNumber()) {
    session.superseded = true;
  }
  session.last_seen = at.now;
  session.silent = false;
  return session;
}

void MasterCore::WorkerHeard(const WorkerKey& worker, const WorkerTimes* times, StepTime at) {
  awaited_.erase(worker.name);
  Node* node = books_.nodes.FindOrAdd(worker.name, kRoleWorker, leases_);
  if (node == nullptr || node->record.role != kRoleWorker) return;
  node->last_heard = at.now;
  if (times != nullptr) node->times = *times;
  if (node->record.incarnation != worker.incarnation) {
    node->record.incarnation = worker.incarnation;
    books_.nodes.KeepStart(node, sessions_[worker].start);
    books_.nodes.Touch(*node);
  }
  const bool was_lost = node->record.state == "lost";
  if (books_.nodes.SetState(node, "running") && was_lost) {
    books_.Say(at, "node-back", worker.name, "its heartbeat is back");
  }
}

JobDirective MasterCore::Directive() const {
  switch (state_) {
    case JobState::kSucceeded:
    case JobState::kFailed:
    case JobState::kCancelled:
      return JobDirective::kEnd;
    case JobState::kDraining:
    case JobState::kDrained:
      return JobDirective::kDrain;
    default:
      return JobDirective::kWork;
  }
}

JobDirective MasterCore::DirectiveOf(const std::string& name) const {
  const JobDirective directive = Directive();
  const auto node = books_.nodes.nodes().find(name);
  const bool drains =
      node != books_.nodes.nodes().end() && node->second.drain.state != NodeDrain::State::kNone;
  return drains && directive == JobDirective::kWork ? JobDirective::kDrain : directive;
}

absl::StatusOr<WorkerExchangeReply> MasterCore::ExchangeWorker(const WorkerExchangeRequest& request,
                                                               StepTime at) {
  now_ = at.now;
  const WorkerKey worker{request.worker, request.incarnation};
  Session& session = TouchSession(worker, at);
  // An error, not a drain: who exits after a drain is taken to have done its part, and is not
  // started again.
  if (session.superseded) {
    return absl::FailedPreconditionError(
        fmt::format("worker '{}': another process or session has taken this name; this one must "
                    "exit, and a second session needs a name of its own",
                    worker.name));
  }
  WorkerExchangeReply reply;
  reply.master_incarnation = books_.incarnation;
  reply.heartbeat_interval = books_.options.leases.heartbeat_interval;
  // A call that was overtaken by a newer one says nothing about what the worker holds now.
  const bool fresh = request.sequence > session.sequence;
  WorkerHeard(worker, fresh ? &request.times : nullptr, at);
  if (fresh) {
    session.sequence = request.sequence;
    TakePeers(request, &session);
    TakeDelays(request, at.now, &session);
    TakeHeld(request, worker, at, &reply);
  }
  TakeReturned(request, worker, at);
  for (const DoneReport& done : request.done) {
    reply.verdicts.push_back(TakeDone(done, worker, at));
  }
  CheckRejects(at);
  CheckLimits(at);
  CheckEnd(at);
  if (fresh) Grant(request, worker, at, &reply);
  reply.directive = DirectiveOf(worker.name);
  Node* node = books_.nodes.Find(worker.name);
  if (node != nullptr && node->drain.state != NodeDrain::State::kNone) {
    node->drain.told = true;
    if (fresh) AdvanceDrain(node, at);
  }
  if (request.map_version < books_.partitions.version()) reply.map = Map();
  return reply;
}

#ifdef MUSTER_PLANTED_BUGS
bool MasterCore::Revivable(const HeldLease& held) const {
  const auto newest = newest_token_.find(held.shard);
  return MUSTER_WEAKENED(kRevivedLease) && newest != newest_token_.end() &&
         newest->second == held.token &&
         books_.ledger.queue().StateOf(held.shard) == ShardState::kTodo;
}
#endif

bool MasterCore::Reassert(const HeldLease& held, const WorkerKey& worker, StepTime at) {
  const bool may = (grace_ && held.token.incarnation() < books_.incarnation) || Revivable(held);
  if (!may || IsTerminal(state_) || !books_.ledger.queue().Valid(held.shard) ||
      held.token == LeaseToken() || leases_.Find(held.token) != nullptr) {
    return false;
  }
  const Lease* const other = leases_.FindShard(held.shard);
  if (other != nullptr ? other->token > held.token
                       : books_.ledger.queue().StateOf(held.shard) != ShardState::kTodo) {
    return false;
  }
  // An evaluation may have begun before some of its training was replayed: the journal does not
  // say.
  if (books_.ledger.IsEvaluate(held.shard) &&
      held.restore_epoch < books_.partitions.restore_epoch()) {
    return false;
  }
  if (other != nullptr) EndLease(other->token, EndCause::kDropped);
  books_.ledger.queue().Take(held.shard);
  leases_.Add({held.shard, held.token, worker, held.restore_epoch,
               books_.ledger.IsEvaluate(held.shard), at.now, held.phase, held.minibatches_started,
               at.now, held.run});
  if (!books_.ledger.IsEvaluate(held.shard)) forgetting_.OnLeased(held.shard, held.token);
  ++books_.totals.reasserted_leases;
  return true;
}

void MasterCore::TakeHeld(const WorkerExchangeRequest& request, const WorkerKey& worker,
                          StepTime at, WorkerExchangeReply* reply) {
  Session& session = sessions_.at(worker);
  absl::flat_hash_set<LeaseToken> listed;
  for (const DoneReport& done : request.done) listed.insert(done.token);
  for (const ReturnedLease& returned : request.returned) listed.insert(returned.token);
  for (const HeldLease& held : request.held) {
    listed.insert(held.token);
    if (Lease* lease = leases_.Find(held.token);
        lease != nullptr && lease->worker == worker && lease->shard == held.shard) {
      // Every run but the first is of minibatches that were handed out before.
      const uint32_t before = lease->run == held.run ? lease->minibatches_started : 0;
      if (held.run > RunNumber() && held.minibatches_started > before) {
        books_.totals.redelivered_minibatches += held.minibatches_started - before;
      }
      if (leases_.Update(held, at.now)) session.progress_at = at.now;
      continue;
    }
    if (session.accepted.contains(held.token)) continue;
    if (!books_.ledger.queue().Valid(held.shard)) {
      reply->lost.push_back(held.token);
      continue;
    }
    const std::optional<DoneShard> done = books_.ledger.queue().FindDone(held.shard);
    if (done.has_value() && done->token == held.token) continue;
    if (Revivable(held)) continue;  // by its done
    if (!Reassert(held, worker, at)) reply->lost.push_back(held.token);
  }
  absl::erase_if(session.accepted, [&](LeaseToken token) { return !listed.contains(token); });
  // It has seen the grant and does not hold it: the lease has ended.
  for (LeaseToken token : leases_.TokensOf(worker)) {
    if (token <= request.newest_grant && !listed.contains(token)) {
      EndLease(token, EndCause::kDropped);
    }
  }
}

void MasterCore::TakeReturned(const WorkerExchangeRequest& request, const WorkerKey& worker,
                              StepTime at) {
  for (const ReturnedLease& returned : request.returned) {
    const Lease* lease = leases_.Find(returned.token);
    if (lease == nullptr) {
      const HeldLease held{returned.shard,
                           returned.token,
                           books_.partitions.restore_epoch(),
                           {},
                           LeasePhase::kComputing,
                           0};
      if (!Reassert(held, worker, at)) continue;
      lease = leases_.Find(returned.token);
    }
    if (lease->worker != worker || lease->shard != returned.shard) continue;
    sessions_.at(worker).progress_at = at.now;
    EndLease(returned.token,
             returned.failure.has_value() ? EndCause::kTrainerFailure : EndCause::kReturned);
    if (!returned.failure.has_value()) {
      TakeHandBack(returned, worker, at);
      continue;
    }
    if (returned.fatal) {
      EndJob(JobState::kFailed, fmt::format("{}: {}", worker.name, *returned.failure), at);
      return;
    }
    Charge(returned.token, {returned.shard, worker}, *returned.failure, at);
  }
}

void MasterCore::TakeHandBack(const ReturnedLease& returned, const WorkerKey& worker, StepTime at) {
  Session& session = sessions_.at(worker);
  if (returned.hand_back == HandBack::kShortage && !std::exchange(session.shortage_told, true)) {
    books_.Say(at, "shard-handed-back", worker.name,
               fmt::format("shard {} of dataset '{}' goes to the next who asks, charged to nobody: "
                           "{} (told once until a shard is finished there)",
                           ToString(returned.shard),
                           books_.options.datasets[returned.shard.dataset.value()].name,
                           returned.shortage));
  }
  // It may have been asked to leave and not know it yet.
  if (returned.hand_back != HandBack::kByTrainer ||
      DirectiveOf(worker.name) != JobDirective::kWork) {
    return;
  }
  if (!hand_backs_.Count(returned.shard, returned.token, returned.minibatches_started)) return;
  Charge(returned.token, {returned.shard, worker},
         fmt::format("handed back {} times without progress: the trainer leaves the shard before "
                     "its end",
                     HandBacks::kWithoutProgressMax),
         at);
}

DoneVerdict MasterCore::TakeDone(const DoneReport& done, const WorkerKey& worker, StepTime at) {
  DoneVerdict verdict{done.shard, done.token, done.run, DoneCode::kRefused,
                      books_.partitions.restore_epoch()};
  Session& session = sessions_.at(worker);
  if (!books_.ledger.queue().Valid(done.shard)) return verdict;
  const std::optional<DoneShard> before = books_.ledger.queue().FindDone(done.shard);
  if ((before.has_value() && before->token == done.token) ||
      session.accepted.contains(done.token)) {
    verdict.code = DoneCode::kAccepted;
    return verdict;
  }
  Lease* lease = leases_.Find(done.token);
  if (lease == nullptr) {
    const HeldLease held{done.shard, done.token,           done.restore_epoch,
                         done.run,   LeasePhase::kPushing, 0};
    if (Reassert(held, worker, at)) lease = leases_.Find(done.token);
  }
  if (MUSTER_PLANTED(kDoneWithoutLease) && lease == nullptr &&
      books_.ledger.queue().StateOf(done.shard) == ShardState::kTodo) {
    books_.ledger.queue().Take(done.shard);
    leases_.Add({done.shard, done.token, worker, done.restore_epoch,
                 books_.ledger.IsEvaluate(done.shard), at.now, LeasePhase::kPushing, 0});
    lease = leases_.Find(done.token);
  }
  if (lease != nullptr && (lease->shard != done.shard || lease->worker != worker)) {
    lease = nullptr;
  }
  if (lease == nullptr) {
    ++books_.totals.refused_dones;
    return verdict;
  }
  if ((!lease->evaluate || MUSTER_PLANTED(kEvaluateReverified)) &&
      done.restore_epoch < books_.partitions.restore_epoch() && !MUSTER_PLANTED(kNoReverify) &&
      !books_.options.planted_bugs.no_reverify) {
    if (lease->restore_epoch < books_.partitions.restore_epoch()) {
      ++books_.totals.reverified_runs;
      lease->restore_epoch = books_.partitions.restore_epoch();
      lease->progress_at = session.progress_at = at.now;
    }
    verdict.code = DoneCode::kReverify;
    return verdict;
  }
  // The worker has heard of a restore by the map, and has asked by itself.
  if (!lease->evaluate && done.restore_epoch > lease->restore_epoch)
    ++books_.totals.reverified_runs;
  const bool evaluate = lease->evaluate;
  leases_.Remove(lease->token);
  session.progress_at = at.now;
  session.shortage_told = false;
  hand_backs_.Forget(done.shard);
  if (evaluate) {
    books_.ledger.MarkEvaluated(done.shard, done.metrics);
    books_.SayWhenCommitted(done.shard.dataset, done.shard.epoch, at);
    if (Node* node = books_.nodes.Find(worker.name)) {
      node->record.records_committed += books_.ledger.RecordsOf(done.shard);
      books_.nodes.Touch(*node);
    }
  } else {
    books_.ledger.MarkDone(done.shard, done.token, worker.name, done.metrics);
  }
  TellRejects(done, worker.name, at);
  session.accepted.insert(done.token);
  verdict.code = DoneCode::kAccepted;
  return verdict;
}

void MasterCore::Grant(const WorkerExchangeRequest& request, const WorkerKey& worker, StepTime at,
                       WorkerExchangeReply* reply) {
  // Granted before, but the answer never arrived: granted again under the same token.
  absl::flat_hash_set<LeaseToken> listed;
  for (const HeldLease& held : request.held) listed.insert(held.token);
  const uint32_t want =
      state_ == JobState::kRunning && DirectiveOf(worker.name) == JobDirective::kWork
          ? std::min(request.want, kGrantsPerCallMax)
          : 0;
  for (LeaseToken token : leases_.TokensOf(worker)) {
    if (token <= request.newest_grant || listed.contains(token)) continue;
    if (MUSTER_PLANTED(kGrantOnce)) continue;
    if (reply->grants.size() >= want) {
      EndLease(token, EndCause::kDropped);
      continue;
    }
    Lease* lease = leases_.Find(token);
    lease->restore_epoch = books_.partitions.restore_epoch();
    reply->grants.push_back({lease->shard, token, lease->restore_epoch, WorkOf(lease->shard)});
  }
  while (gate_.open() && (!grace_ || MUSTER_WEAKENED(kBusyGrace)) && reply->grants.size() < want) {
    const std::optional<ShardId> shard = books_.ledger.queue().TakeNext();
    if (!shard.has_value()) break;
    const LeaseToken token = NextToken();
    ++token_count_;
    leases_.Add({*shard, token, worker, books_.partitions.restore_epoch(),
                 books_.ledger.IsEvaluate(*shard), at.now, LeasePhase::kQueued, 0});
    if (!books_.ledger.IsEvaluate(*shard)) forgetting_.OnLeased(*shard, token);
#ifdef MUSTER_PLANTED_BUGS
    newest_token_[*shard] = token;
#endif
    reply->grants.push_back({*shard, token, books_.partitions.restore_epoch(), WorkOf(*shard)});
    sessions_.at(worker).progress_at = at.now;
  }
  if (want > 0 && reply->grants.empty()) {
    reply->heartbeat_interval = std::min(reply->heartbeat_interval, kWaitInterval);
  }
}

void MasterCore::TakePeers(const WorkerExchangeRequest& request, Session* session) {
  for (const PeerTimes& seen : request.peers) {
    if (seen.server.value() >= books_.options.servers) continue;
    Node* node = books_.nodes.Find(NodeTable::ServerName(seen.server));
    // Of a process that has been replaced, or of one that is not known yet.
    if (node == nullptr || node->record.incarnation != seen.incarnation.value()) continue;
    PeerTimes& last = session->peers[seen.server];
    if (last.incarnation != seen.incarnation) last = PeerTimes{.incarnation = seen.incarnation};
    // Totals never shrink; what a peer says is not to be trusted with that.
    const auto add = [&](uint64_t PeerTimes::* field) {
      if (seen.*field <= last.*field) return;
      node->peers.*field += seen.*field - last.*field;
      last.*field = seen.*field;
    };
    add(&PeerTimes::pulls);
    add(&PeerTimes::pull_us);
    add(&PeerTimes::pushes);
    add(&PeerTimes::push_us);
  }
}

void MasterCore::EndLeasesOf(const WorkerKey& worker, EndCause cause) {
  for (LeaseToken token : leases_.TokensOf(worker)) EndLease(token, cause);
}

PartitionMap MasterCore::Map() const {
  PartitionMap map{books_.partitions.version(), books_.partitions.restore_epoch(),
                   books_.partitions.Entries(), books_.nodes.Endpoints()};
  if (books_.options.planted_bugs.no_reverify) {
    for (PartitionEntry& entry : map.partitions) entry.restored_at = RestoreEpoch();
  }
  return map;
}

void MasterCore::TickWorkers(StepTime at) {
  std::map<std::string, size_t> expired;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const auto& [worker, session] = *it;
    const auto silence = at.now - session.last_seen;
    if (silence >= books_.options.leases.duration && !session.silent) {
      it->second.silent = true;
      const size_t count = leases_.CountOf(worker);
      books_.totals.expired_leases += count;
      expired[worker.name] += count;
      EndLeasesOf(worker, EndCause::kNodeFailure);
    }
    it = silence >= 10 * books_.options.leases.duration ? sessions_.erase(it) : std::next(it);
  }
  // By what was heard of the node, not by its session: a worker that hung while the master was
  // away has none with this one.
  for (const auto& [name, const_node] : books_.nodes.nodes()) {
    if (const_node.record.role != kRoleWorker || const_node.record.state != "running") continue;
    if (!const_node.last_heard.has_value() ||
        at.now - *const_node.last_heard < books_.options.leases.duration) {
      continue;
    }
    books_.nodes.SetState(books_.nodes.Find(name), "lost");
    books_.Say(at, "node-lost", name,
               fmt::format("no heartbeat for {} ms; {} leases expired",
                           books_.options.leases.duration.count(), expired[name]));
  }
  ExpireStuckLeases(at);
}

void MasterCore::ExpireStuckLeases(StepTime at) {
  if (MUSTER_PLANTED(kNoMaxAge) || MUSTER_WEAKENED(kAgeless)) return;
  const TimePoint then = at.now - books_.options.leases.max_age;
  std::vector<LeaseToken> stuck = leases_.BegunWithoutProgressSince(then);
  // What a worker has not begun waits for its turn: it is stuck when the worker is.
  for (const auto& [worker, session] : sessions_) {
    if (session.progress_at > then) continue;
    for (LeaseToken token : leases_.TokensOf(worker)) {
      if (leases_.Find(token)->phase == LeasePhase::kQueued) stuck.push_back(token);
    }
  }
  std::map<std::string, std::vector<ShardId>> by_worker;
  for (LeaseToken token : stuck) {
    const Lease& lease = *leases_.Find(token);
    by_worker[lease.worker.name].push_back(lease.shard);
    ++books_.totals.expired_leases;
    EndLease(token, EndCause::kNodeFailure);
  }
  for (const auto& [name, shards] : by_worker) {
    books_.Say(at, "lease-expired", name,
               fmt::format("no progress for {} ms (spec.leases.maxAge) on {} shard{}, {} first",
                           books_.options.leases.max_age.count(), shards.size(),
                           shards.size() == 1 ? "" : "s", ToString(shards.front())));
  }
}

}  // namespace muster
