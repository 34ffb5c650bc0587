// The worker's side of MasterCore: sessions, leases, dones.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "master/core/master_core.h"

namespace muster {
namespace {

/// A session that was silent for so many durations of a lease is forgotten.
constexpr int kForgetAfter = 10;

/// The R of a partition's last restore, as workers are told.
RestoreEpoch ToldRestore(const PartitionEntry& entry, const PlantedBugs& bugs) {
  return bugs.no_reverify ? RestoreEpoch() : entry.restored_at;
}

}  // namespace

absl::Status MasterCore::HelloWorker(const WorkerKey& worker, StartNumber start, StepTime at) {
  now_ = at.now;
  Node* node = books_.nodes.FindOrAdd(worker.name, kRoleWorker, leasing_.table());
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
      leasing_.EndOf(key, Leasing::EndCause::kNodeFailure);
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
  life_.CheckEnd(at);
  return absl::OkStatus();
}

MasterCore::Session& MasterCore::TouchSession(const WorkerKey& worker, StepTime at) {
  const auto [it, added] = sessions_.try_emplace(worker);
  Session& session = it->second;
  if (added) leasing_.Join(worker, at.now);
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
  leasing_.grace().Settle(worker.name);
  Node* node = books_.nodes.FindOrAdd(worker.name, kRoleWorker, leasing_.table());
  if (node == nullptr || node->record.role != kRoleWorker) return;
  node->last_heard = at.now;
  if (times != nullptr) node->times = *times;
  if (node->record.incarnation != worker.incarnation) {
    node->record.incarnation = worker.incarnation;
    books_.nodes.KeepStart(node, sessions_.at(worker).start);
    books_.nodes.Touch(*node);
  }
  const bool was_lost = node->record.state == "lost";
  if (books_.nodes.SetState(node, "running") && was_lost) {
    books_.Say(at, "node-back", worker.name, "its heartbeat is back");
  }
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
    leasing_.TakeHeld(request, worker, at, &reply.lost);
  }
  const std::optional<std::string> fatal =
      leasing_.TakeReturned(request, worker, drains_.DirectiveOf(worker.name), at);
  if (fatal.has_value()) life_.End(JobState::kFailed, *fatal, at);
  for (const DoneReport& done : request.done) {
    reply.verdicts.push_back(dones_.Take(done, worker, at));
  }
  life_.CheckRejects(at);
  life_.CheckLimits(at);
  life_.CheckEnd(at);
  reply.directive = drains_.DirectiveOf(worker.name);
  if (fresh) {
    const bool works = reply.directive == JobDirective::kWork;
    const uint32_t shards_max = works ? kGrantsPerCallMax : 0;
    leasing_.Grant(request, worker, {shards_max, life_.MayGrantMore()}, at, &reply);
  }
  drains_.WorkerTold(worker.name, fresh, at);
  if (request.map_version < books_.partitions.version()) reply.map = Map();
  return reply;
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

void MasterCore::TakeDelays(const WorkerExchangeRequest& request, TimePoint now, Session* session) {
  for (const DatasetDelays& told : request.delays) {
    if (!streams_.IsStream(told.dataset)) continue;
    const auto [last, first] = session->delays.try_emplace(told.dataset);
    streams_.TakeDelays(told, first ? nullptr : &last->second, now);
    last->second = told.delays;
  }
}

PartitionMap MasterCore::Map() const {
  PartitionMap map{books_.partitions.version(), books_.partitions.restore_epoch(),
                   books_.partitions.Entries(), books_.nodes.Endpoints()};
  for (PartitionEntry& entry : map.partitions) {
    entry.restored_at = ToldRestore(entry, books_.options.planted_bugs);
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
      const size_t count = leasing_.table().CountOf(worker);
      books_.totals.expired_leases += count;
      expired[worker.name] += count;
      leasing_.EndOf(worker, Leasing::EndCause::kNodeFailure);
    }
    if (silence < kForgetAfter * books_.options.leases.duration) {
      ++it;
      continue;
    }
    leasing_.Leave(worker);
    it = sessions_.erase(it);
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
}

}  // namespace muster
