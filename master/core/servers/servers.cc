#include "master/core/servers/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace muster {
namespace {

/// How often a server calls while the job waits for its snapshots.
constexpr std::chrono::milliseconds kUrgentInterval{50};

}  // namespace

absl::StatusOr<RegisterServerReply> Servers::Register(const RegisterServerRequest& request,
                                                      StepTime at) {
  if (books_->options.servers == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "server '{}': this job has no servers (spec.replicaSpecs.ps.replicas is 0)", request.name));
  }
  const std::optional<ServerId> id = NodeTable::ServerIdOf(request.name);
  if (!id.has_value() || id->value() >= books_->options.servers || request.nonce == 0) {
    return absl::InvalidArgumentError(
        fmt::format("server '{}' (nonce {}): this job has the servers ps-0 to ps-{}, and a nonce "
                    "must not be 0",
                    request.name, request.nonce, books_->options.servers - 1));
  }
  Node* const node = nodes_->FindOrAdd(request.name, NodeRole::kServer, leasing_->table());
  if (node == nullptr || !node->record.Is(NodeRole::kServer)) {
    return absl::ResourceExhaustedError(fmt::format(
        "server '{}': another node has this name, or there are too many nodes", request.name));
  }
  NodeRecord& record = node->record;
  MUSTER_RETURN_IF_ERROR(CheckNotReplaced(record, request.start));
  node->last_heard = at.now;
  if (std::ranges::count(record.superseded_nonces, request.nonce) > 0) {
    return absl::FailedPreconditionError(fmt::format(
        "server '{}': another process has taken its place (incarnation {}); this one must exit",
        request.name, record.incarnation));
  }
  if (record.nonce != request.nonce) {
    Admit(request, *id, node, at);
  } else if (record.lanes != request.lanes) {
    record.lanes = request.lanes;
    partitions_->EndpointChanged(*id);
  }
  nodes_->Learn(node, NodeNews::kHeard);
  nodes_->Touch(*node);
  return RegisterServerReply{books_->incarnation, *id, ServerIncarnation(record.incarnation)};
}

void Servers::Admit(const RegisterServerRequest& request, ServerId id, Node* node, StepTime at) {
  NodeRecord& record = node->record;
  if (record.nonce != 0) record.superseded_nonces.push_back(record.nonce);
  if (record.superseded_nonces.size() > NodeTable::kSupersededMax) {
    record.superseded_nonces.erase(record.superseded_nonces.begin());
  }
  newest_ = newest_.Next();
  MUSTER_CHECK_MSG(record.incarnation < newest_.value(), record.name);
  record.nonce = request.nonce;
  record.incarnation = newest_.value();
  nodes_->KeepStart(node, request.start);
  record.lanes = request.lanes;
  record.skipped_before += std::exchange(record.skipped_now, 0);
  record.stale_before += std::exchange(record.stale_now, 0);
  node->sequence = 0;
  node->warm_start_error.clear();
  node->counters = {};
  node->usage = {};
  node->peers = {};
  node->unreachable_from.clear();
  node->drain = {};
  books_->Say(at, "server-registered", request.name,
              fmt::format("incarnation {}", newest_.value()));
  snapshots_->Replay(partitions_->ServerReplaced(id, newest_),
                     fmt::format("another process took the place of {}", request.name), at);
}

Servers::Call Servers::WhichCall(const ServerExchangeRequest& request) const {
  const auto& nodes = books_->nodes.nodes();
  const auto node = nodes.find(NodeTable::ServerName(request.id));
  if (node == nodes.end() || !node->second.record.Is(NodeRole::kServer) ||
      request.incarnation == ServerIncarnation() ||
      node->second.record.incarnation != request.incarnation.value()) {
    return Call::kUnknown;
  }
  return request.sequence <= node->second.sequence ? Call::kOvertaken : Call::kNewest;
}

ServerExchangeReply Servers::Exchange(const ServerExchangeRequest& request, StepTime at) {
  ServerExchangeReply reply;
  reply.master_incarnation = books_->incarnation;
  reply.heartbeat_interval = books_->options.server_times.heartbeat_interval;
  const Call call = WhichCall(request);
  Node* const node = nodes_->Find(NodeTable::ServerName(request.id));
  if (call != Call::kUnknown) Hear(node, at);
  if (call == Call::kNewest) TakeOwned(request, node, at);
  // PartitionTable::Accept checks whose snapshots they are.
  if (call != Call::kOvertaken) snapshots_->Take(request, at);
  reply.unknown_incarnation = call == Call::kUnknown;
  if (call != Call::kNewest) return reply;
  TakeErrors(request, node, at);
  partitions_->TakeTraffic(request.id, request.incarnation, request.traffic);
  drains_->ServerHeard(node, request.leaving, at);
  Command(request, *node, at, &reply);
  return reply;
}

void Servers::Hear(Node* node, StepTime at) {
  node->last_heard = at.now;
  if (nodes_->Learn(node, NodeNews::kHeard) == NodeState::kLost) {
    books_->Say(at, "node-back", node->record.name, "its heartbeat is back");
  }
}

void Servers::TakeOwned(const ServerExchangeRequest& request, Node* node, StepTime at) {
  node->sequence = request.sequence;
  node->usage = request.usage;
  CountParts(request, node);
  for (const MissingReport& missing : request.missing) {
    snapshots_->Replay(
        partitions_->Missing(request.id, request.incarnation, missing),
        fmt::format("{} has lost partition {}", node->record.name, missing.partition.value()), at);
  }
  if (partitions_->Reported(request.id, request.incarnation, request.owned)) {
    leasing_->forgetting().OnRestored();
  }
}

void Servers::CountParts(const ServerExchangeRequest& request, Node* node) {
  node->counters = request.counters;
  NodeRecord& record = node->record;
  if (record.skipped_now == request.counters.parts_skipped &&
      record.stale_now == request.counters.parts_stale) {
    return;
  }
  record.skipped_now = request.counters.parts_skipped;
  record.stale_now = request.counters.parts_stale;
  nodes_->Touch(*node);
}

void Servers::Command(const ServerExchangeRequest& request, const Node& node, StepTime at,
                      ServerExchangeReply* reply) {
  const bool draining = node.drain.state == DrainState::kDraining;
  const bool urgent = life_->NeedsSnapshots();
  reply->drained = node.drain.state == DrainState::kDrained || life_->over();
  if (!life_->over()) {
    snapshots_->Ask(request.id, request.incarnation,
                    {urgent, draining ? node.drain.goal : DoneSeq()}, at.now);
  }
  if (urgent || draining) {
    reply->heartbeat_interval = std::min(reply->heartbeat_interval, kUrgentInterval);
  }
  reply->tables = tables_->After(request.newest_table);
  books_->partitions.FillCommands(request.id, request.incarnation, reply);
  const ForgetState& forget = leasing_->forgetting().state();
  if (forget.version != 0 && forget.version != request.forget_version) reply->forget = forget;
}

void Servers::TakeErrors(const ServerExchangeRequest& request, Node* node, StepTime at) {
  TakeSnapshotError(request, node, at);
  TakeWarmStartError(request, node, at);
  if (!request.fatal_error.empty() && !life_->over()) {
    life_->End(JobState::kFailed, fmt::format("{}: {}", node->record.name, request.fatal_error),
               at);
  }
  TakeRestoreError(request, node, at);
}

void Servers::TakeSnapshotError(const ServerExchangeRequest& request, Node* node, StepTime at) {
  const CoreOptions& options = books_->options;
  const WriteTrouble::Change change =
      node->snapshots.Take({request.snapshot_error, books_->ledger.commit_seq()}, at.now,
                           options.snapshot_interval + options.snapshot_timeout);
  if (change == WriteTrouble::Change::kBegan) {
    books_->Say(
        at, "snapshot-error", node->record.name,
        fmt::format("{}; no shard is COMMITTED until this is fixed", request.snapshot_error));
  } else if (change == WriteTrouble::Change::kOver) {
    books_->Say(at, "snapshots-work-again", node->record.name, "");
  }
}

void Servers::TakeWarmStartError(const ServerExchangeRequest& request, Node* node, StepTime at) {
  if (node->warm_start_error == request.warm_start_error) return;
  node->warm_start_error = request.warm_start_error;
  if (request.warm_start_error.empty()) return;
  books_->Say(at, "warm-start-error", node->record.name,
              fmt::format("{}; the server tries again, and workers wait for the table",
                          request.warm_start_error));
}

void Servers::TakeRestoreError(const ServerExchangeRequest& request, Node* node, StepTime at) {
  RestoreTrouble& restore = node->restore;
  if (request.restore_error.empty() && !restore.active()) return;
  const PartitionTable::Load load = books_->partitions.LoadOf(request.id);
  const RestoreTrouble::Change change =
      restore.Take({request.restore_error, load.owned - load.serving}, at.now);
  if (change == RestoreTrouble::Change::kBegan) {
    books_->Say(at, "restore-error", node->record.name,
                fmt::format("{}; the server tries again, and workers wait", restore.Text()));
  } else if (change == RestoreTrouble::Change::kOver) {
    books_->Say(at, "restored", node->record.name, "it serves all its partitions again");
  }
  if (restore.active() && restore.lasts() >= books_->options.restore_timeout && !life_->over()) {
    const std::string trouble = fmt::format("{}: {}", node->record.name, restore.Text());
    life_->End(JobState::kFailed,
               RestoreTrouble::EndText(trouble, books_->options.restore_timeout,
                                       books_->options.snapshot_directory),
               at);
  }
}

void Servers::Tick(StepTime at) {
  const std::chrono::milliseconds timeout = books_->options.server_times.timeout;
  for (const auto& [name, const_node] : books_->nodes.nodes()) {
    const NodeRecord& record = const_node.record;
    if (!record.Is(NodeRole::kServer) || record.state != NodeState::kRunning) continue;
    if (!const_node.last_heard.has_value() || at.now - *const_node.last_heard < timeout) continue;
    nodes_->Learn(nodes_->Find(name), NodeNews::kSilent);
    books_->Say(at, "node-lost", name,
                fmt::format("no heartbeat for {} ms; its partitions wait for a new process",
                            timeout.count()));
  }
}

}  // namespace muster
