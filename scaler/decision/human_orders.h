#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scaler/model/job_view.h"
#include "scaler/model/model.h"
#include "scaler/model/orders.h"

namespace muster::scaler {

/// What a person wants, granted: for Decider::Take, which makes the event durable.
struct Granted {
  rest::Event event;
  /// The complete order: with the life of the node, all limits, and so on.
  Order order;
};

/// What the judgement needs to know besides the view.
struct HumanFacts {
  /// Why the kernel enforces no limits here. It is empty if it enforces them.
  std::string limits_remark;
  /// The names of all policies, and of those that are paused.
  std::vector<std::string> policies;
  std::set<std::string> paused;
  /// The nodes that `muster join` runs, with the names of their machines.
  std::map<std::string, std::string> joined;
  /// The number of workers that the plan wants. Workers that leave do not count.
  uint32_t workers = 0;
};

/// Grants an order that does no harm. Otherwise it refuses with a status that says what was wrong,
/// with which value, and what to do. The codes are those of rest::JobApi. A refusal leaves no
/// event. Pure.
///
/// - A restart may also be given to a node that is down. It then waits no longer than it must.
/// - A drained worker hands over and is gone. The drain is refused for the last worker, and if the
///   job file wants at least as many workers as there are. A drained server takes snapshots and
///   stays.
/// - Limits must be within the job file's maximum, the budget and the machine. A memory limit must
///   be at least 5 % above what the node uses.
/// - A number of workers must be within the job file's range (if it has one), the budget and the
///   machine.
///
/// The master may still refuse the orders that it carries out. The drain of a node that `muster
/// join` runs is one of them.
absl::StatusOr<Granted> Judge(const Wish& wish, const JobView& view, const HumanFacts& facts);

}  // namespace muster::scaler
