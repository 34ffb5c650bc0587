#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "scaler/model/job_view.h"

namespace muster::scaler {

/// What keeps a node from getting more.
enum class Bound : uint8_t { kNone, kNodeMax, kBudget, kMachine };
/// The subject of "... allows no more". The rest: what other nodes do not have.
std::string ToString(Bound bound, NodeRole role);

/// The most that one node may have; 0 = no bound is known.
struct Room {
  Resources most;
  Bound memory_bound = Bound::kNone;
  Bound cpu_bound = Bound::kNone;
};

/// Limits that were decided and are not in the view yet, by node.
using PendingLimits = std::map<std::string, Resources>;

/// The room of `node`: its own maximum, and what the others leave of the job's budget and, of
/// memory, of the machine. A node without a memory limit counts with what it uses. Never less than
/// what the node has now: a node may keep what it has.
Room RoomOf(const JobView& view, const NodeView& node, const PendingLimits& pending = {});

/// How many workers there may be.
struct WorkerRoom {
  uint32_t most = 0;
  /// What keeps it from being more; kNone: nothing does.
  Bound bound = Bound::kNone;
};
/// Of the `wanted` workers: those that the budget and the machine have room for, each as large as
/// the largest one. As many as there are always have room.
WorkerRoom RoomForWorkers(const JobView& view, uint32_t wanted, const PendingLimits& pending = {});

/// What one node counts for against budget and machine.
Resources CountedFor(const NodeView& node, const PendingLimits& pending = {});

}  // namespace muster::scaler
