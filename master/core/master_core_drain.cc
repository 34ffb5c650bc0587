// Drains of single nodes, for MasterCore.
#include <fmt/format.h>

#include "base/check.h"
#include "master/core/master_core.h"

namespace muster {
absl::StatusOr<NodeDrain> MasterCore::DrainNode(const std::string& name,
                                                std::chrono::milliseconds timeout, StepTime at) {
  now_ = at.now;
  Node* node = books_.nodes.Find(name);
  if (node == nullptr) {
    return absl::NotFoundError(fmt::format(
        "node '{}': the job has no such node; `muster nodes` lists those that it has", name));
  }
  if (node->record.role == kRoleMaster) {
    return absl::InvalidArgumentError(fmt::format(
        "node '{}' cannot be drained: a master has nothing to hand over. `muster drain` "
        "drains the whole job",
        name));
  }
  if (IsTerminal(state_)) {
    return absl::FailedPreconditionError(fmt::format(
        "node '{}' has nothing to be drained of: the job has ended ({})", name, ToString(state_)));
  }
  if (node->drain.state != NodeDrain::State::kNone) return node->drain;
  if (node->record.state != "running" && node->record.state != "lost") {
    return absl::FailedPreconditionError(
        fmt::format("node '{}' is {}: only a node whose process has been heard can be drained",
                    name, node->record.state));
  }
  BeginDrain(node, timeout.count() == 0 ? books_.options.drain_timeout : timeout, at);
  if (node->record.role == kRoleServer) AdvanceDrain(node, at);
  return node->drain;
}

absl::Status MasterCore::ResumeNode(const std::string& name, StepTime at) {
  now_ = at.now;
  Node* node = books_.nodes.Find(name);
  if (node == nullptr) {
    return absl::NotFoundError(fmt::format(
        "node '{}': the job has no such node; `muster nodes` lists those that it has", name));
  }
  if (node->drain.state == NodeDrain::State::kNone) return absl::OkStatus();
  if (node->drain.told) {
    return absl::FailedPreconditionError(fmt::format(
        "worker '{}' has been told to leave and ends: start another process instead", name));
  }
  node->drain = {};
  books_.Say(at, "node-resumed", name, "its drain was taken back");
  return absl::OkStatus();
}

void MasterCore::BeginDrain(Node* node, std::chrono::milliseconds timeout, StepTime at) {
  node->drain = {};
  node->drain.state = NodeDrain::State::kDraining;
  node->drain.began = at.now;
  node->drain.timeout = timeout;
  const NodeRecord& record = node->record;
  if (record.role == kRoleServer) {
    node->drain.goal = books_.ledger.done_seq();
    node->drain.left =
        books_.partitions.CountBehind(*NodeTable::ServerIdOf(record.name),
                                      ServerIncarnation(record.incarnation), node->drain.goal);
    books_.Say(at, "node-drain-began", record.name,
               fmt::format("{} partitions to be snapshotted", node->drain.left));
    return;
  }
  node->drain.left =
      static_cast<uint32_t>(leasing_.table().CountOf({record.name, record.incarnation}));
  books_.Say(at, "node-drain-began", record.name, fmt::format("{} leases", node->drain.left));
}

void MasterCore::AdvanceDrain(Node* node, StepTime at) {
  if (node->drain.state != NodeDrain::State::kDraining) return;
  const NodeRecord& record = node->record;
  if (record.role == kRoleServer) {
    node->drain.left =
        books_.partitions.CountBehind(*NodeTable::ServerIdOf(record.name),
                                      ServerIncarnation(record.incarnation), node->drain.goal);
  } else {
    node->drain.left =
        static_cast<uint32_t>(leasing_.table().CountOf({record.name, record.incarnation}));
  }
  if (node->drain.left == 0) EndDrain(node, at);
}

void MasterCore::EndDrain(Node* node, StepTime at) {
  MUSTER_CHECK(node->drain.state == NodeDrain::State::kDraining);
  node->drain.state = NodeDrain::State::kDrained;
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(at.now - node->drain.began);
  std::string text = fmt::format("after {} ms", took.count());
  if (node->record.role == kRoleServer && node->drain.left > 0) {
    text += fmt::format(": {} partitions are without a new snapshot; what they lack runs again",
                        node->drain.left);
  }
  books_.Say(at, "node-drained", node->record.name, text);
}

void MasterCore::TickDrains(StepTime at) {
  for (const auto& [name, const_node] : books_.nodes.nodes()) {
    const NodeDrain& drain = const_node.drain;
    if (drain.state != NodeDrain::State::kDraining || at.now - drain.began < drain.timeout) {
      continue;
    }
    Node* node = books_.nodes.Find(name);
    if (node->record.role == kRoleWorker) {
      const WorkerKey worker{name, node->record.incarnation};
      if (const size_t count = leasing_.table().CountOf(worker); count > 0) {
        books_.Say(at, "drain-timeout", name,
                   fmt::format("{} leases ended: their shards run elsewhere", count));
        leasing_.EndOf(worker, Leasing::EndCause::kDropped);
      }
      node->drain.left = 0;
    }
    EndDrain(node, at);
  }
}

}  // namespace muster
