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

/// The facts for the judgement besides the view.
struct HumanFacts {
  /// Why the kernel enforces no limits here; "" = it does.
  std::string limits_remark;
  /// By name; and which of them are paused.
  std::vector<std::string> policies;
  std::set<std::string> paused;
  /// Nodes that `muster join` runs, and the names of their machines.
  std::map<std::string, std::string> joined;
  /// That the plan wants: those that leave are not among them.
  uint32_t workers = 0;
};

/// Grants harmless orders, or refuses with a status that says what was wrong, with which value, and
/// what to do. The codes are those of rest::JobApi; a refusal leaves no event. Pure.
///
/// A restart: also of a node that is down, which then waits no longer than it must. A drain: a
/// worker hands over and is gone, unless it is the last one or the job file wants as many as there
/// are; a server snapshots and stays. Limits: within the job file's maximum, the budget and the
/// machine, and not below what it uses and 5 %. Workers: within the job file's range, if it has
/// one, the budget and the machine. The master may still refuse the orders that it carries out,
/// among them the drain of a node that `muster join` runs.
absl::StatusOr<Granted> Judge(const Wish& wish, const JobView& view, const HumanFacts& facts);

}  // namespace muster::scaler
