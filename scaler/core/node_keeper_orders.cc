// What policies and people want, for NodeKeeper.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/check.h"
#include "scaler/core/node_keeper.h"

namespace muster::scaler {
namespace {

constexpr std::chrono::milliseconds kDrainAskAgain{1'000};

/// Of limits; nothing is larger than none.
Resources Largest(const Resources& a, const Resources& b) {
  const bool any_cpus = a.cpus == 0 || b.cpus == 0;
  const bool any_memory = a.memory_bytes == 0 || b.memory_bytes == 0;
  return {.cpus = any_cpus ? 0 : std::max(a.cpus, b.cpus),
          .memory_bytes = any_memory ? 0 : std::max(a.memory_bytes, b.memory_bytes)};
}

}  // namespace

NodeKeeper::Node* NodeKeeper::NodeOf(const std::string& name) {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool NodeKeeper::Leaves(const Node& node) {
  return node.durable.role == NodeRole::kWorker && node.durable.ending == NodePlan::Ending::kDrain;
}

void NodeKeeper::On(const LimitNode& order) {
  Node* const node = NodeOf(order.node);
  // While the job drains, too: who is killed for its memory snapshots nothing.
  if (node == nullptr || stage_ > Stage::kDraining) return;
  const Resources former = std::exchange(node->durable.limits, order.limits);
  if (node->state != Node::State::kRunning) return;
  // What was not carried out before we took over, was never in force.
  if (!node->adopted || !node->durable.former_limits.has_value()) {
    node->durable.former_limits = former;
  }
  Emit(SetLimits{order.node, order.limits});
}

void NodeKeeper::On(const LimitRefused& event) {
  Node* const node = NodeOf(event.node);
  if (node == nullptr || node->durable.limits != event.limits) return;
  if (!node->durable.former_limits.has_value()) return;
  node->durable.limits = *std::exchange(node->durable.former_limits, std::nullopt);
}

void NodeKeeper::On(const RelaunchNode& order) {
  Node* const node = NodeOf(order.node);
  if (node == nullptr || node->state == Node::State::kFinished || Leaves(*node)) return;
  if (order.only_start.has_value() && *order.only_start != node->durable.starts) return;
  const bool running = node->state == Node::State::kRunning;
  const bool needed = stage_ == Stage::kDraining && node->durable.role == NodeRole::kServer;
  if (!TakesOrders() && (running || !needed)) return;
  if (order.limits.has_value()) {
    node->durable.limits = *order.limits;
    node->durable.former_limits.reset();  // they are for the next start, whoever refuses them now
  }
  if (running) {
    Emit(Note{fmt::format("relaunching {}: {}", order.node, order.why)});
    node->durable.ending = NodePlan::Ending::kRelaunch;
    node->hangs |= order.hangs;
    return;  // AdvanceEndings() stops it
  }
  // One that waits was counted when the master had heard of its end.
  if (!order.charged && !std::exchange(node->excused, true) &&
      node->state == Node::State::kWaiting) {
    node->policy.Excuse();
  }
  if (node->state == Node::State::kWaiting) {
    node->start_at = std::min(node->start_at,
                              std::max(now_, node->started_at + options_.restarts.backoff_initial));
  }
}

void NodeKeeper::On(const ScaleWorkers& order) {
  if (!TakesOrders()) return;
  workers_ = std::min(order.workers, kWorkersMax);
  std::map<uint32_t, std::string> living = LivingWorkers();
  if (living.size() < workers_) AddWorkers(workers_ - static_cast<uint32_t>(living.size()));
  while (living.size() > workers_) {
    const std::string name = std::prev(living.end())->second;
    Leave(name, NodeOf(name));
    living.erase(std::prev(living.end()));
  }
}

void NodeKeeper::On(const EndNode& order) {
  Node* const node = NodeOf(order.node);
  if (node == nullptr || !TakesOrders()) return;
  if (node->durable.role == NodeRole::kWorker) {
    Leave(order.node, node);
    workers_ = static_cast<uint32_t>(LivingWorkers().size());
  } else if (node->state == Node::State::kRunning &&
             node->durable.ending == NodePlan::Ending::kNone) {
    node->durable.ending = NodePlan::Ending::kDrain;
    node->drain_began.reset();
    node->drain_asked.reset();
    node->drain_shown = false;
  }
}

void NodeKeeper::On(const FailJob& order) {
  if (TakesOrders()) GiveUp(order.reason);
}

std::map<uint32_t, std::string> NodeKeeper::LivingWorkers() const {
  std::map<uint32_t, std::string> living;
  for (const auto& [name, node] : nodes_) {
    if (node.state == Node::State::kFinished || Leaves(node)) continue;
    if (const std::optional<uint32_t> number = WorkerNumber(name)) living.emplace(*number, name);
  }
  return living;
}

Resources NodeKeeper::LimitsOfNewWorker() const {
  std::optional<Resources> limits;
  for (const auto& [number, name] : LivingWorkers()) {
    // What its peers turned out to need, it will need as well.
    const Resources& peer = nodes_.at(name).durable.limits;
    limits = limits.has_value() ? Largest(*limits, peer) : peer;
  }
  return limits.value_or(options_.worker_limits);
}

void NodeKeeper::Leave(const std::string& name, Node* node) {
  if (node->state == Node::State::kFinished || Leaves(*node)) return;
  Emit(Note{fmt::format("{} is to leave", name)});
  if (node->state == Node::State::kWaiting) return Finish(node);
  node->durable.ending = NodePlan::Ending::kDrain;  // AdvanceEndings() goes on
}

void NodeKeeper::AddWorkers(uint32_t count) {
  const Resources limits = LimitsOfNewWorker();
  for (uint32_t number = 0; count > 0 && number < kWorkersMax; ++number) {
    const std::string name = WorkerName(number);
    const auto [entry, fresh] = nodes_.try_emplace(name, NewNode({}));
    Node& node = entry->second;
    if (!fresh && node.state != Node::State::kFinished) continue;
    // One that was there before keeps its number of starts, and what it needed.
    node.durable.state = NodePlan::State::kIdle;
    node.durable.limits = fresh ? limits : Largest(limits, node.durable.limits);
    node.policy = RestartPolicy(options_.restarts);
    node.leaves = RestartPolicy(RestartPolicy::Endless(options_.restarts));
    node.state = Node::State::kWaiting;
    node.start_at = now_;
    --count;
  }
}

void NodeKeeper::AdvanceEndings() {
  for (auto& [name, node] : nodes_) {
    if (node.state != Node::State::kRunning || node.told_to_end || node.adopted) continue;
    if (node.durable.ending == NodePlan::Ending::kRelaunch) {
      Stop(name, &node,
           node.hangs ? options_.stop_timeout
                      : std::max(options_.stop_timeout, options_.drain_timeout));
    }
    if (node.durable.ending == NodePlan::Ending::kDrain) AdvanceDrain(name, &node);
  }
}

void NodeKeeper::AdvanceDrain(const std::string& name, Node* node) {
  MUSTER_CHECK_MSG(node->state == Node::State::kRunning, name);
  if (!node->drain_began.has_value()) node->drain_began = now_;
  if (now_ - *node->drain_began >= options_.drain_timeout) {
    if (Leaves(*node)) {
      Emit(Note{fmt::format("stopping {}: it has not left within {} (spec.drainTimeout)", name,
                            InSeconds(options_.drain_timeout))});
      Stop(name, node, options_.stop_timeout);
    } else if (!node->drain_shown) {
      Emit(
          Note{fmt::format("{} was not drained within {} (spec.drainTimeout): the master refuses, "
                           "or is away",
                           name, InSeconds(options_.drain_timeout))});
      node->durable.ending = NodePlan::Ending::kNone;
    }
    return;
  }
  if (node->drain_shown) return;
  if (node->drain_asked.has_value() && now_ - *node->drain_asked < kDrainAskAgain) return;
  node->drain_asked = now_;
  Emit(AskDrainNode{name, options_.drain_timeout});
}

void NodeKeeper::Stop(const std::string& name, Node* node, std::chrono::milliseconds timeout) {
  const TimePoint due = now_ + timeout;
  // Again when less time is left to it, as when the job ends during a relaunch.
  if (std::exchange(node->told_to_end, true) && node->stop_due <= due) return;
  node->stop_due = due;
  Emit(StopNode{name, timeout});
}

}  // namespace muster::scaler
