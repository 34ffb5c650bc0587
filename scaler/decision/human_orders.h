#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scaler/decision/orders.h"
#include "scaler/policy/job_view.h"
#include "scaler/rest/job_api.h"
#include "scaler/rest/model.h"

namespace muster::scaler {

/// What a person wants, granted: for Decider::Take, which makes the event durable.
struct HumanOrder {
  rest::Event event;
  /// Nothing: it is the master's to do, which is asked before the event is told; or the Decider's.
  std::optional<Order> order;
  Action taken_as = Action::kRelaunch;  // of `order`
};

/// What people may order, of which nothing is done that would do harm: each function grants it, or
/// refuses with a status that says what was wrong, with which value, and what to do. The codes are
/// those of rest::JobApi; a refusal leaves no event.
///
/// Pure; a value that lives no longer than what it was made of.
class HumanOrders {
 public:
  struct Facts {
    /// Why the kernel enforces no limits here; "" = it does.
    std::string limits_remark;
    /// By name; and which of them are paused.
    std::vector<std::string> policies;
    std::set<std::string> paused;
    /// That the plan wants: those that leave are not among them.
    uint32_t workers = 0;
  };
  HumanOrders(const JobView& view, const Facts& facts) : view_(view), facts_(facts) {}

  /// Also of a node that is down: it waits no longer than it must.
  absl::StatusOr<HumanOrder> Restart(const std::string& node,
                                     const rest::RestartOrder& order) const;
  /// A worker hands over and is gone, unless it is the last one or the job file wants as many as
  /// there are; a server snapshots and stays.
  absl::StatusOr<HumanOrder> DrainNode(const std::string& node, const std::string& reason) const;
  /// Within the job file's maximum, the budget and the machine, and not below what it uses and 5 %.
  absl::StatusOr<HumanOrder> Resize(const std::string& node, const rest::ResizeOrder& order) const;
  /// Within the job file's range, if it has one, the budget and the machine.
  absl::StatusOr<HumanOrder> Scale(uint32_t workers, const std::string& reason) const;
  absl::StatusOr<HumanOrder> Pause(const std::string& policy, const std::string& reason) const;
  absl::StatusOr<HumanOrder> Resume(const std::string& policy, const std::string& reason) const;

  // The master's to do, which may refuse as well.
  absl::StatusOr<HumanOrder> DrainJob(const std::string& reason) const;
  absl::StatusOr<HumanOrder> CancelJob(const std::string& reason) const;
  /// `ids`: those that the master is to put back.
  absl::StatusOr<HumanOrder> RetryShards(const std::vector<std::string>& ids,
                                         const std::string& reason) const;

 private:
  absl::StatusOr<const NodeView*> Find(const std::string& node) const;
  absl::Status KnowsPolicy(const std::string& policy) const;
  absl::Status IsTraining() const;
  absl::Status IsNotOver() const;
  absl::Status MayHaveMemory(const NodeView& node, uint64_t bytes) const;
  absl::Status MayHaveCpus(const NodeView& node, double cpus) const;

  const JobView& view_;
  const Facts& facts_;
};

}  // namespace muster::scaler
