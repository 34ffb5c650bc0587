#include "scaler/nodes/kept_workers.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/check.h"
#include "base/words/limits.h"
#include "host/node_name.h"

namespace muster::scaler {
namespace {

/// The larger of both, for each resource. No limit is larger than any limit.
Resources Largest(const Resources& a, const Resources& b) {
  const bool any_cpus = a.cpus == 0 || b.cpus == 0;
  const bool any_memory = a.memory_bytes == 0 || b.memory_bytes == 0;
  return {.cpus = any_cpus ? 0 : std::max(a.cpus, b.cpus),
          .memory_bytes = any_memory ? 0 : std::max(a.memory_bytes, b.memory_bytes)};
}

/// The living worker that leaves next: one that waits for a place, else the one with the highest
/// number.
std::map<uint32_t, std::string>::iterator NextToLeave(std::map<uint32_t, std::string>* living,
                                                      const KeeperNodes& nodes) {
  for (auto worker = living->end(); worker != living->begin();) {
    --worker;
    const auto* const life = std::get_if<KeeperNode::Running>(&nodes.at(worker->second).state);
    if (life != nullptr && life->waits()) return worker;
  }
  return std::prev(living->end());
}

}  // namespace

std::vector<std::string> KeptWorkers::Want(uint32_t count, KeeperNodes* nodes) {
  wanted_ = std::min(count, kWorkersMax);
  std::map<uint32_t, std::string> living = Living(*nodes);
  if (living.size() < wanted_) Add(wanted_ - static_cast<uint32_t>(living.size()), nodes);
  std::vector<std::string> leave;
  while (living.size() > wanted_) {
    const auto worker = NextToLeave(&living, *nodes);
    leave.push_back(worker->second);
    MUSTER_CHECK_MSG(Leave(&nodes->at(leave.back())), leave.back());
    living.erase(worker);
  }
  return leave;
}

void KeptWorkers::WantTheLiving(const KeeperNodes& nodes) {
  wanted_ = static_cast<uint32_t>(Living(nodes).size());
}

bool KeptWorkers::Leave(KeeperNode* worker) {
  if (worker->is<KeeperNode::Finished>() || worker->leaving()) return false;
  if (KeeperNode::Running* const life = worker->life()) {
    life->ending = NodePlan::Ending::kDrain;
  } else {
    worker->state = KeeperNode::Finished{};
  }
  return true;
}

std::map<uint32_t, std::string> KeptWorkers::Living(const KeeperNodes& nodes) {
  std::map<uint32_t, std::string> living;
  for (const auto& [name, node] : nodes) {
    if (node.is<KeeperNode::Finished>() || node.leaving()) continue;
    if (const std::optional<uint32_t> number = WorkerNumber(name)) living.emplace(*number, name);
  }
  return living;
}

Resources KeptWorkers::LimitsOfNew(const KeeperNodes& nodes) const {
  std::optional<Resources> limits;
  for (const auto& [number, name] : Living(nodes)) {
    // It will probably need as much as its peers.
    const Resources& peer = nodes.at(name).limits;
    limits = limits.has_value() ? Largest(*limits, peer) : peer;
  }
  return limits.value_or(options_.limits);
}

void KeptWorkers::Add(uint32_t count, KeeperNodes* nodes) {
  const Resources limits = LimitsOfNew(*nodes);
  for (uint32_t number = 0; count > 0 && number < kWorkersMax; ++number) {
    const std::string name = WorkerName(number);
    const auto [entry, fresh] =
        nodes->try_emplace(name, name, options_.restarts, NodePlan{.limits = limits});
    KeeperNode& node = entry->second;
    if (!fresh) {
      if (!node.is<KeeperNode::Finished>()) continue;
      // It keeps its number of starts, and the limits that it needed.
      node.limits = Largest(limits, node.limits);
      node.policy = RestartPolicy(options_.restarts);
      node.leaves = RestartPolicy(RestartPolicy::Endless(options_.restarts));
      node.state = KeeperNode::Waiting{};
    }
    --count;
  }
}

}  // namespace muster::scaler
