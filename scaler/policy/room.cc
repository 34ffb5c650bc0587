#include "scaler/policy/room.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::scaler {
namespace {

uint64_t Left(uint64_t all, uint64_t used) {
  // 0 would mean "no bound", so the smallest rest is 1.
  return std::max<uint64_t>(all > used ? all - used : 0, 1);
}

}  // namespace

std::string ToString(Bound bound, NodeRole role) {
  switch (bound) {
    case Bound::kNodeMax:
      return fmt::format("the job file's maximum for {} nodes", ToString(role));
    case Bound::kBudget:
      return "the rest of the job's budget";
    case Bound::kMachine:
      return "the rest of this machine";
    case Bound::kNone:
      break;
  }
  return "nothing";
}

Resources CountedFor(const NodeView& node, const PendingLimits& pending) {
  const auto decided = pending.find(node.name);
  Resources counted = decided != pending.end() ? decided->second : node.limits;
  if (counted.memory_bytes == 0 && !node.samples.empty()) {
    counted.memory_bytes = node.samples.back().memory_bytes;
  }
  return counted;
}

Room RoomOf(const JobView& view, const NodeView& node, const PendingLimits& pending) {
  Resources others;
  for (const NodeView& other : view.nodes) {
    if (other.name == node.name) continue;
    const Resources counted = CountedFor(other, pending);
    others.cpus += counted.cpus;
    others.memory_bytes += counted.memory_bytes;
  }
  Room room;
  const auto bound_memory = [&room](uint64_t most, Bound bound) {
    if (room.memory_bound != Bound::kNone && room.most.memory_bytes <= most) return;
    room.most.memory_bytes = most;
    room.memory_bound = bound;
  };
  const auto bound_cpus = [&room](double most, Bound bound) {
    if (room.cpu_bound != Bound::kNone && room.most.cpus <= most) return;
    room.most.cpus = most;
    room.cpu_bound = bound;
  };
  if (node.max.memory_bytes > 0) bound_memory(node.max.memory_bytes, Bound::kNodeMax);
  if (view.budget.memory_bytes > 0) {
    bound_memory(Left(view.budget.memory_bytes, others.memory_bytes), Bound::kBudget);
  }
  if (view.machine.memory_bytes > 0) {
    bound_memory(Left(view.machine.memory_bytes, others.memory_bytes), Bound::kMachine);
  }
  if (node.max.cpus > 0) bound_cpus(node.max.cpus, Bound::kNodeMax);
  if (view.budget.cpus > 0) {
    // Less than a hundredth of a core is no use, and 0 would mean "no bound".
    bound_cpus(std::max(view.budget.cpus - others.cpus, 0.01), Bound::kBudget);
  }
  if (view.machine.cpus > 0) bound_cpus(view.machine.cpus, Bound::kMachine);
  const Resources has = pending.contains(node.name) ? pending.at(node.name) : node.limits;
  if (room.memory_bound != Bound::kNone) {
    room.most.memory_bytes = std::max(room.most.memory_bytes, has.memory_bytes);
  }
  if (room.cpu_bound != Bound::kNone) room.most.cpus = std::max(room.most.cpus, has.cpus);
  return room;
}

WorkerRoom RoomForWorkers(const JobView& view, uint32_t wanted, const PendingLimits& pending) {
  uint32_t now = 0;
  Resources each;
  Resources all;
  for (const NodeView& node : view.nodes) {
    const Resources counted = CountedFor(node, pending);
    all.cpus += counted.cpus;
    all.memory_bytes += counted.memory_bytes;
    if (node.role != NodeRole::kWorker) continue;
    ++now;
    each.cpus = std::max(each.cpus, counted.cpus);
    each.memory_bytes = std::max(each.memory_bytes, counted.memory_bytes);
  }
  WorkerRoom room{.most = wanted};
  // How many more workers of the largest size fit. A worker that counts with nothing always fits.
  const auto fit = [&](double capacity, double used, double one, Bound which) {
    if (capacity <= 0 || one <= 0 || room.most <= now) return;
    const double more = std::max(capacity - used, 0.0) / one;
    if (more >= room.most - now) return;
    room = {.most = now + static_cast<uint32_t>(more), .bound = which};
  };
  const auto bytes = [](uint64_t value) { return static_cast<double>(value); };
  fit(view.budget.cpus, all.cpus, each.cpus, Bound::kBudget);
  fit(bytes(view.budget.memory_bytes), bytes(all.memory_bytes), bytes(each.memory_bytes),
      Bound::kBudget);
  fit(bytes(view.machine.memory_bytes), bytes(all.memory_bytes), bytes(each.memory_bytes),
      Bound::kMachine);
  return room;
}

}  // namespace muster::scaler
