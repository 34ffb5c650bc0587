#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "scaler/model/job_view.h"

namespace muster::scaler {

/// What keeps a node from getting more.
enum class Bound : uint8_t { kNone, kNodeMax, kBudget, kMachine };
/// The subject of "... allows no more". For budget and machine, it means the part that other nodes
/// do not have.
std::string ToString(Bound bound, NodeRole role);

/// The most that one node may have. 0 means that no bound is known.
struct Room {
  Resources most;
  Bound memory_bound = Bound::kNone;
  Bound cpu_bound = Bound::kNone;
};

/// Limits that were decided and are not in the view yet, by node.
using PendingLimits = std::map<std::string, Resources>;

/// The room of `node`: within its own maximum, the part of the job's budget that other nodes leave,
/// and the part of the machine's memory that they leave. A node without a memory limit counts with
/// what it uses. The room is never less than what the node has now, because it may keep that.
Room RoomOf(const JobView& view, const NodeView& node, const PendingLimits& pending = {});

/// How many workers there may be.
struct WorkerRoom {
  uint32_t most = 0;
  /// What prevents a larger number; kNone if nothing does.
  Bound bound = Bound::kNone;
};
/// How many of the `wanted` workers the budget and the machine have room for, if each is as large
/// as the largest one. There is always room for the workers that there are.
WorkerRoom RoomForWorkers(const JobView& view, uint32_t wanted, const PendingLimits& pending = {});

/// What one node takes of budget and machine.
Resources CountedFor(const NodeView& node, const PendingLimits& pending = {});

}  // namespace muster::scaler
