#include "master/core/nodes/drains.h"

#include <fmt/format.h>

#include "base/check.h"

namespace muster {
namespace {

absl::Status NoSuchNode(const std::string& name) {
  return absl::NotFoundError(
      fmt::format("the job has no node '{}'; `muster nodes` lists its nodes", name));
}

}  // namespace

absl::StatusOr<NodeDrain> Drains::Drain(const std::string& name, std::chrono::milliseconds timeout,
                                        StepTime at) {
  Node* const node = nodes_->Find(name);
  if (node == nullptr) return NoSuchNode(name);
  if (!node->record.Is(NodeRole::kWorker) && !node->record.Is(NodeRole::kServer)) {
    return absl::InvalidArgumentError(
        fmt::format("node '{}' cannot be drained: only workers and servers can, not a {}. `muster "
                    "drain` drains the whole job",
                    name, node->record.role));
  }
  if (life_->over()) {
    return absl::FailedPreconditionError(fmt::format(
        "node '{}' cannot be drained: the job has ended ({})", name, ToString(life_->state())));
  }
  if (node->drain.state != DrainState::kNone) return node->drain;
  const NodeState state = node->record.state;
  if (state != NodeState::kRunning && state != NodeState::kLost) {
    return absl::FailedPreconditionError(fmt::format(
        "node '{}' is {}: only a running or a lost node can be drained", name, ToString(state)));
  }
  Begin(node, timeout.count() == 0 ? books_->options.drain_timeout : timeout, at);
  if (node->record.Is(NodeRole::kServer)) Advance(node, at);
  return node->drain;
}

absl::Status Drains::Resume(const std::string& name, StepTime at) {
  Node* const node = nodes_->Find(name);
  if (node == nullptr) return NoSuchNode(name);
  if (node->drain.state == DrainState::kNone) return absl::OkStatus();
  if (node->drain.told) {
    return absl::FailedPreconditionError(fmt::format(
        "worker '{}' has heard of its drain and ends; start another process instead", name));
  }
  node->drain = {};
  group_->Drain(name, false, at);
  books_->Say(at, "node-resumed", name, "its drain was cancelled");
  return absl::OkStatus();
}

JobDirective Drains::DirectiveOf(const std::string& name) const {
  const JobDirective directive = life_->Directive();
  const auto& nodes = books_->nodes.nodes();
  const auto node = nodes.find(name);
  const bool drains = node != nodes.end() && node->second.drain.state != DrainState::kNone;
  return drains && directive == JobDirective::kWork ? JobDirective::kDrain : directive;
}

void Drains::WorkerTold(const std::string& name, bool fresh, StepTime at) {
  Node* const node = nodes_->Find(name);
  if (node == nullptr || node->drain.state == DrainState::kNone) return;
  node->drain.told = true;
  if (fresh) Advance(node, at);
}

void Drains::ServerHeard(Node* node, bool leaving, StepTime at) {
  if (leaving && !node->drain.leaving && !life_->over()) {
    // After a long time, a drained node may be behind again.
    if (node->drain.state != DrainState::kDraining) {
      Begin(node, books_->options.drain_timeout, at);
    }
    node->drain.leaving = true;
  }
  Advance(node, at);
}

void Drains::Exited(Node* node, StepTime at) {
  if (node->drain.state != DrainState::kDraining) return;
  if (!node->record.Is(NodeRole::kWorker)) {
    node->drain = {};
    return;
  }
  node->drain.left = 0;
  End(node, at);
}

void Drains::Tick(StepTime at) {
  for (const auto& [name, const_node] : books_->nodes.nodes()) {
    const NodeDrain& drain = const_node.drain;
    if (drain.state != DrainState::kDraining || at.now - drain.began < drain.timeout) {
      continue;
    }
    Node* const node = nodes_->Find(name);
    if (node->record.Is(NodeRole::kWorker)) {
      const WorkerKey worker{name, node->record.incarnation};
      if (const size_t count = leasing_->table().CountOf(worker); count > 0) {
        books_->Say(at, "drain-timeout", name,
                    fmt::format("{} leases were ended; their shards run elsewhere", count));
        leasing_->EndOf(worker, Leasing::EndCause::kDropped);
      }
      node->drain.left = 0;
    }
    End(node, at);
  }
}

uint32_t Drains::CountLeft(const Node& node) const {
  const NodeRecord& record = node.record;
  if (!record.Is(NodeRole::kServer)) {
    if (group_->on()) return group_->IsMember(record.name) ? 1 : 0;
    return static_cast<uint32_t>(leasing_->table().CountOf({record.name, record.incarnation}));
  }
  const std::optional<ServerId> server = NodeTable::ServerIdOf(record.name);
  MUSTER_CHECK_MSG(server.has_value(), record.name);
  return books_->partitions.CountBehind(*server, ServerIncarnation(record.incarnation),
                                        node.drain.goal);
}

void Drains::Begin(Node* node, std::chrono::milliseconds timeout, StepTime at) {
  const bool server = node->record.Is(NodeRole::kServer);
  MUSTER_CHECK_MSG(node->drain.state != DrainState::kDraining && !life_->over(), node->record.name);
  node->drain = {};
  node->drain.state = DrainState::kDraining;
  node->drain.began = at.now;
  node->drain.timeout = timeout;
  if (server) node->drain.goal = books_->ledger.done_seq();
  if (!server) group_->Drain(node->record.name, true, at);
  node->drain.left = CountLeft(*node);
  books_->Say(at, "node-drain-began", node->record.name,
              fmt::format("{} {}", node->drain.left,
                          server         ? "partitions without a new snapshot"
                          : group_->on() ? "places in the group"
                                         : "leases"));
}

void Drains::Advance(Node* node, StepTime at) {
  if (node->drain.state != DrainState::kDraining) return;
  node->drain.left = CountLeft(*node);
  if (node->drain.left == 0) End(node, at);
}

void Drains::End(Node* node, StepTime at) {
  MUSTER_CHECK(node->drain.state == DrainState::kDraining);
  node->drain.state = DrainState::kDrained;
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(at.now - node->drain.began);
  std::string text = fmt::format("after {} ms", took.count());
  if (node->record.Is(NodeRole::kServer) && node->drain.left > 0) {
    text +=
        fmt::format(": {} partitions have no new snapshot; the work since the last one runs again",
                    node->drain.left);
  }
  books_->Say(at, "node-drained", node->record.name, text);
}

}  // namespace muster
