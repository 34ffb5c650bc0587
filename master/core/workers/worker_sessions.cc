#include "master/core/workers/worker_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace muster {
namespace {

/// A session that was silent for this many lease durations is forgotten.
constexpr int kForgetAfter = 10;

}  // namespace

absl::Status WorkerSessions::Begin(const WorkerKey& worker, StartNumber start, StepTime at) {
  Node* const node = nodes_->FindOrAdd(worker.name, NodeRole::kWorker, leasing_->table());
  if (node == nullptr || !node->record.Is(NodeRole::kWorker)) {
    return absl::ResourceExhaustedError(
        node == nullptr
            ? fmt::format("worker '{}': the job already has {} live nodes, which is the limit",
                          worker.name, books_->options.limits.nodes)
            : fmt::format("worker '{}': a {} already has this name", worker.name,
                          node->record.role));
  }
  MUSTER_RETURN_IF_ERROR(CheckNotReplaced(node->record, start));
  if (!sessions_.contains(worker)) {
    // The processes of a node run one after the other.
    for (auto it = sessions_.lower_bound({worker.name, 0});
         it != sessions_.end() && it->first.name == worker.name; ++it) {
      if (std::exchange(it->second.superseded, true)) continue;
      leasing_->EndOf(it->first, Leasing::EndCause::kNodeFailure);
    }
    books_->Say(at, "worker-joined", worker.name, "");
    node->times = {};
    node->outputs = {};
    node->drain = {};
  }
  node->record.incarnation = worker.incarnation;
  node->usage = {};
  nodes_->KeepStart(node, start);
  Touch(worker, at);
  nodes_->Touch(*node);
  HearNode(worker, nullptr, at);
  return absl::OkStatus();
}

absl::StatusOr<WorkerSessions::Call> WorkerSessions::Hear(const WorkerExchangeRequest& request,
                                                          StepTime at) {
  const WorkerKey worker{request.worker, request.incarnation};
  Session& session = Touch(worker, at);
  MUSTER_RETURN_IF_ERROR(CheckNotSuperseded(worker, session));
  if (request.sequence <= session.sequence) {
    HearNode(worker, nullptr, at);
    return Call::kOvertaken;
  }
  HearNode(worker, &request, at);
  session.sequence = request.sequence;
  TakePeers(request, &session);
  TakeUnreachable(request, at);
  TakeUnwritten(request, at);
  TakeDelays(request, at.now, &session);
  return Call::kNewest;
}

absl::Status WorkerSessions::HearMember(const WorkerKey& worker, StepTime at) {
  MUSTER_RETURN_IF_ERROR(CheckNotSuperseded(worker, Touch(worker, at)));
  HearNode(worker, nullptr, at);
  return absl::OkStatus();
}

absl::Status WorkerSessions::CheckNotSuperseded(const WorkerKey& worker,
                                                const Session& session) const {
  if (!session.superseded) return absl::OkStatus();
  // An error, not a drain: a worker that exits after a drain counts as finished and is not
  // restarted.
  return absl::FailedPreconditionError(
      fmt::format("worker '{}': another process or session now has this name, so this one must "
                  "exit; a second session needs a name of its own",
                  worker.name));
}

WorkerSessions::Session& WorkerSessions::Touch(const WorkerKey& worker, StepTime at) {
  const auto [it, added] = sessions_.try_emplace(worker);
  Session& session = it->second;
  if (added) leasing_->Join(worker, at.now);
  // After a restart of the master, the journal has the newest process, because every process begins
  // with a Hello.
  const Node* const node = nodes_->Find(worker.name);
  if (node != nullptr && node->record.incarnation == worker.incarnation) {
    session.start = node->record.start;
  } else if (added && node != nullptr && node->record.start != StartNumber()) {
    session.superseded = true;
  }
  session.last_seen = at.now;
  session.silent = false;
  return session;
}

void WorkerSessions::HearNode(const WorkerKey& worker, const WorkerExchangeRequest* newest,
                              StepTime at) {
  leasing_->grace().Settle(worker.name);
  Node* const node = nodes_->FindOrAdd(worker.name, NodeRole::kWorker, leasing_->table());
  if (node == nullptr || !node->record.Is(NodeRole::kWorker)) return;
  node->last_heard = at.now;
  if (newest != nullptr) {
    node->times = newest->times;
    node->usage = newest->usage;
  }
  if (node->record.incarnation != worker.incarnation) {
    node->record.incarnation = worker.incarnation;
    nodes_->KeepStart(node, sessions_.at(worker).start);
    nodes_->Touch(*node);
  }
  if (nodes_->Learn(node, NodeNews::kHeard) == NodeState::kLost) {
    books_->Say(at, "node-back", worker.name, "its heartbeat is back");
  }
}

void WorkerSessions::TakePeers(const WorkerExchangeRequest& request, Session* session) {
  for (const PeerTimes& seen : request.peers) {
    if (seen.server.value() >= books_->options.servers) continue;
    Node* const node = nodes_->FindServer(seen.server);
    // The call is from a replaced process, or from one that is not known yet.
    if (node == nullptr || node->record.incarnation != seen.incarnation.value()) continue;
    PeerTimes& last = session->peers[seen.server];
    if (last.incarnation != seen.incarnation) last = PeerTimes{.incarnation = seen.incarnation};
    // Totals must never shrink, so values of a peer are not trusted here.
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

void WorkerSessions::TakeUnreachable(const WorkerExchangeRequest& request, StepTime at) {
  std::map<std::string, std::string> now;
  for (const UnreachableServer& told : request.unreachable) {
    if (told.server.value() >= books_->options.servers) continue;
    const Node* const node = nodes_->FindServer(told.server);
    if (node == nullptr || node->record.incarnation != told.incarnation.value()) continue;
    now.emplace(node->record.name, told.text);
  }
  if (now.empty() && unreachable_.empty()) return;
  for (const auto& [server, text] : now) {
    Node* const node = nodes_->Find(server);
    if (node->unreachable_from.empty()) {
      books_->Say(at, "server-unreachable", server,
                  fmt::format("{} cannot connect: {}", request.worker, text));
    }
    node->unreachable_from[request.worker] = text;
    unreachable_.insert(server);
  }
  std::erase_if(unreachable_, [&](const std::string& server) {
    if (now.contains(server)) return false;
    Node* const node = nodes_->Find(server);
    if (node == nullptr) return true;
    const bool was = node->unreachable_from.erase(request.worker) > 0;
    if (was && node->unreachable_from.empty()) {
      books_->Say(at, "server-reachable", server, "every worker can connect again");
    }
    return node->unreachable_from.empty();
  });
}

void WorkerSessions::TakeUnwritten(const WorkerExchangeRequest& request, StepTime at) {
  Node* const node = nodes_->Find(request.worker);
  if (node == nullptr || !node->record.Is(NodeRole::kWorker)) return;
  const WriteTrouble::Change change =
      node->outputs.Take({request.unwritten, books_->ledger.done_seq()}, at.now, /*turn=*/{});
  if (change == WriteTrouble::Change::kBegan) {
    books_->Say(
        at, "outputs-error", request.worker,
        fmt::format("{}; its shards of predictions run again until that works", request.unwritten));
  } else if (change == WriteTrouble::Change::kOver) {
    books_->Say(at, "outputs-work-again", request.worker, "");
  }
}

void WorkerSessions::TakeDelays(const WorkerExchangeRequest& request, TimePoint now,
                                Session* session) {
  for (const DatasetDelays& told : request.delays) {
    if (!books_->ledger.streams().Grows(told.dataset)) continue;
    const auto [last, first] = session->delays.try_emplace(told.dataset);
    streams_->TakeDelays(told, first ? nullptr : &last->second, now);
    last->second = told.delays;
  }
}

std::vector<WorkerKey> WorkerSessions::ProcessesOf(const NodeReport& report,
                                                   const NodeRecord& record) const {
  std::vector<WorkerKey> processes;
  for (auto it = sessions_.lower_bound({report.node, 0});
       it != sessions_.end() && it->first.name == report.node; ++it) {
    if (IsOf(report, record, it->first, it->second)) processes.push_back(it->first);
  }
  return processes;
}

bool WorkerSessions::IsOf(const NodeReport& report, const NodeRecord& record,
                          const WorkerKey& worker, const Session& session) {
  MUSTER_CHECK(worker.name == report.node);
  if (report.incarnation != 0) return worker.incarnation == report.incarnation;
  // The report does not know the incarnation.
  if (session.start != StartNumber()) return session.start <= report.start;
  return record.told_start == report.start;
}

void WorkerSessions::Tick(StepTime at) {
  const std::chrono::milliseconds duration = books_->options.leases.duration;
  std::map<std::string, size_t> expired;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const auto& worker = it->first;
    Session& session = it->second;
    const auto silence = at.now - session.last_seen;
    if (silence >= duration && !session.silent) {
      session.silent = true;
      for (const std::string& server : unreachable_) {
        if (Node* const node = nodes_->Find(server)) node->unreachable_from.erase(worker.name);
      }
      const size_t count = leasing_->table().CountOf(worker);
      totals_->expired_leases += count;
      expired[worker.name] += count;
      leasing_->EndOf(worker, Leasing::EndCause::kNodeFailure);
    }
    // Dead and replaced processes hold nothing, whatever their calls say.
    MUSTER_CHECK_MSG(
        !(session.silent || session.superseded) || leasing_->table().CountOf(worker) == 0,
        worker.name);
    if (silence < kForgetAfter * duration) {
      ++it;
      continue;
    }
    leasing_->Leave(worker);
    it = sessions_.erase(it);
  }
  // Uses the last call of the node, not its session: a worker that hung while the master was away
  // has no session with this master.
  for (const auto& [name, const_node] : books_->nodes.nodes()) {
    const NodeRecord& record = const_node.record;
    if (!record.Is(NodeRole::kWorker) || record.state != NodeState::kRunning) continue;
    if (!const_node.last_heard.has_value() || at.now - *const_node.last_heard < duration) continue;
    nodes_->Learn(nodes_->Find(name), NodeNews::kSilent);
    books_->Say(at, "node-lost", name,
                fmt::format("no heartbeat for {} ms; {} expired", duration.count(),
                            CountText(expired[name], "lease")));
  }
}

void WorkerSessions::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  for (auto& [worker, session] : sessions_) {
    session.last_seen = std::min(session.last_seen + gap, now);
  }
}

}  // namespace muster
