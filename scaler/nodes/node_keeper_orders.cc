// What policies and people want, for NodeKeeper.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "scaler/nodes/node_keeper.h"

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

void NodeKeeper::Obey(const LimitNode& order) {
  KeeperNode* const node = NodeOf(order.node);
  // While the job drains, too: who is killed for its memory snapshots nothing.
  if (node == nullptr || stage_ > Stage::kDraining) return;
  const Resources limits = order.After(node->limits);
  const Resources former = std::exchange(node->limits, limits);
  const Running* const life = std::get_if<Running>(&node->state);
  if (life == nullptr) return;
  // What was not carried out before we took over, was never in force.
  if (!life->found || !node->former_limits.has_value()) node->former_limits = former;
  Emit(SetLimits{order.node, limits});
}

void NodeKeeper::On(const LimitRefused& event) {
  KeeperNode* const node = NodeOf(event.node);
  if (node == nullptr || node->limits != event.limits) return;
  if (!node->former_limits.has_value()) return;
  node->limits = *std::exchange(node->former_limits, std::nullopt);
}

void NodeKeeper::Obey(const RelaunchNode& order) {
  KeeperNode* const node = NodeOf(order.node);
  if (node == nullptr || node->is<Finished>() || node->leaving()) return;
  if (order.only_start.has_value() && *order.only_start != node->starts) return;
  Running* const life = std::get_if<Running>(&node->state);
  const bool needed = stage_ == Stage::kDraining && node->role == NodeRole::kServer;
  if (!TakesOrders() && (life != nullptr || !needed)) return;
  if (order.limits.has_value()) {
    node->limits = *order.limits;
    node->former_limits.reset();  // they are for the next start, whoever refuses them now
  }
  if (life != nullptr) {
    Emit(Note{fmt::format("relaunching {}: {}", order.node, order.why)});
    life->ending = NodePlan::Ending::kRelaunch;
    life->hangs |= order.hangs;  // Advance() stops it
  } else if (Reporting* const gone = std::get_if<Reporting>(&node->state)) {
    gone->excused |= !order.charged;
  } else {
    Waiting& waiting = std::get<Waiting>(node->state);
    // It was counted when the master had heard of its end.
    if (!order.charged && !std::exchange(waiting.excused, true)) node->policy.Excuse();
    waiting.start_at = std::min(
        waiting.start_at, std::max(now_, node->started_at + options_.restarts.backoff_initial));
  }
}

void NodeKeeper::Obey(const ScaleWorkers& order) {
  if (!TakesOrders()) return;
  workers_ = std::min(order.workers, kWorkersMax);
  std::map<uint32_t, std::string> living = LivingWorkers();
  if (living.size() < workers_) AddWorkers(workers_ - static_cast<uint32_t>(living.size()));
  while (living.size() > workers_) {
    Leave(NodeOf(std::prev(living.end())->second));
    living.erase(std::prev(living.end()));
  }
}

void NodeKeeper::Obey(const EndNode& order) {
  KeeperNode* const node = NodeOf(order.node);
  if (node == nullptr || !TakesOrders()) return;
  Running* const life = std::get_if<Running>(&node->state);
  if (node->role == NodeRole::kWorker) {
    Leave(node);
    workers_ = static_cast<uint32_t>(LivingWorkers().size());
  } else if (life != nullptr && life->ending == NodePlan::Ending::kNone) {
    life->ending = NodePlan::Ending::kDrain;
    life->drain = {};
  }
}

void NodeKeeper::Obey(const FailJob& order) {
  if (TakesOrders()) GiveUp(order.reason);
}

void NodeKeeper::Obey(const SetPaused& order) {
  if (order.paused) {
    paused_.insert(order.policy);
  } else {
    paused_.erase(order.policy);
  }
}

std::map<uint32_t, std::string> NodeKeeper::LivingWorkers() const {
  std::map<uint32_t, std::string> living;
  for (const auto& [name, node] : nodes_) {
    if (node.is<Finished>() || node.leaving()) continue;
    if (const std::optional<uint32_t> number = WorkerNumber(name)) living.emplace(*number, name);
  }
  return living;
}

Resources NodeKeeper::LimitsOfNewWorker() const {
  std::optional<Resources> limits;
  for (const auto& [number, name] : LivingWorkers()) {
    // What its peers turned out to need, it will need as well.
    const Resources& peer = nodes_.at(name).limits;
    limits = limits.has_value() ? Largest(*limits, peer) : peer;
  }
  return limits.value_or(options_.worker_limits);
}

void NodeKeeper::Leave(KeeperNode* node) {
  if (node->is<Finished>() || node->leaving()) return;
  Emit(Note{fmt::format("{} is to leave", node->name)});
  if (Running* const life = node->life()) {
    life->ending = NodePlan::Ending::kDrain;  // Advance() goes on
  } else {
    node->state = Finished{};
  }
}

void NodeKeeper::AddWorkers(uint32_t count) {
  const Resources limits = LimitsOfNewWorker();
  for (uint32_t number = 0; count > 0 && number < kWorkersMax; ++number) {
    const std::string name = WorkerName(number);
    const auto [entry, fresh] =
        nodes_.try_emplace(name, name, options_.restarts, NodePlan{.limits = limits});
    KeeperNode& node = entry->second;
    if (!fresh) {
      if (!node.is<Finished>()) continue;
      // It keeps its number of starts, and what it needed.
      node.limits = Largest(limits, node.limits);
      node.policy = RestartPolicy(options_.restarts);
      node.leaves = RestartPolicy(RestartPolicy::Endless(options_.restarts));
      node.state = Waiting{};
    }
    --count;
  }
}

void NodeKeeper::Advance(KeeperNode* node, Running* life) {
  if (stage_ > Stage::kDraining || life->stop_due.has_value() || life->found) return;
  if (life->ending == NodePlan::Ending::kRelaunch) {
    Stop(*node, life,
         life->hangs ? options_.stop_timeout
                     : std::max(options_.stop_timeout, options_.drain_timeout));
  }
  if (life->ending == NodePlan::Ending::kDrain) AdvanceDrain(*node, life);
}

void NodeKeeper::AdvanceDrain(const KeeperNode& node, Running* life) {
  Running::Drain& drain = life->drain;
  if (!drain.began.has_value()) drain.began = now_;
  if (now_ - *drain.began >= options_.drain_timeout) {
    if (node.leaving()) {
      Emit(Note{fmt::format("stopping {}: it has not left within {} (spec.drainTimeout)", node.name,
                            InSeconds(options_.drain_timeout))});
      Stop(node, life, options_.stop_timeout);
    } else if (!drain.shown) {
      Emit(
          Note{fmt::format("{} was not drained within {} (spec.drainTimeout): the master refuses, "
                           "or is away",
                           node.name, InSeconds(options_.drain_timeout))});
      life->ending = NodePlan::Ending::kNone;
    }
    return;
  }
  if (drain.shown) return;
  if (drain.asked.has_value() && now_ - *drain.asked < kDrainAskAgain) return;
  drain.asked = now_;
  Emit(AskDrainNode{node.name, options_.drain_timeout});
}

void NodeKeeper::Stop(const KeeperNode& node, Running* life, std::chrono::milliseconds timeout) {
  const TimePoint due = now_ + timeout;
  // Again when less time is left to it, as when the job ends during a relaunch.
  if (life->stop_due.has_value() && *life->stop_due <= due) return;
  life->stop_due = due;
  Emit(StopNode{node.name, timeout});
}

}  // namespace muster::scaler
