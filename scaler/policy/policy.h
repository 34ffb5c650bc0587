#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "scaler/model/job_view.h"

namespace muster::scaler {

/// A figure that a decision rests on, and the time over which it was taken (0 = a moment).
struct Evidence {
  std::string name;
  double value = 0;
  std::string unit;
  std::chrono::seconds window{0};
};

/// What an action changes: nothing that can be counted, a node's limits, or how many workers.
using Amount = std::variant<std::monostate, Resources, uint32_t>;

/// An action that a policy proposes, and why.
struct Proposal {
  /// kRepair: the node is down, or the job cannot go on; nothing that works is disturbed.
  /// kIntervention: something that runs is changed or ended.
  enum class Kind : uint8_t { kRepair, kIntervention };

  std::string policy;
  Action action = Action::kRestart;
  Kind kind = Kind::kIntervention;
  std::string target;  // a node, "workers", or "job"
  Amount before;
  Amount after;
  std::vector<Evidence> evidence;
  std::string because;  // one sentence for people
  /// Further lines, for the reason of a job that is stopped; empty, or each after a line break.
  std::string details;
  std::string ended;  // the node whose end it answers; "" = it answers none
};

/// Evidence from PSI, where it is known (not negative).
void AddPressure(const std::string& name, double percent, Proposal* proposal);

/// One reason to act. A policy repeats a proposal while its reason holds and no action was taken
/// (JobView::taken lists them). The Arbiter decides which actions are taken, and how often.
///
/// Deterministic: it depends on its state and its inputs only, without a clock or randomness. A
/// value with one owner; not thread-safe.
class Policy {
 public:
  virtual ~Policy() = default;
  /// "out-of-memory": in events, and to pause it by.
  virtual std::string name() const = 0;
  /// Called about once a second with views whose `now` never goes back.
  virtual std::vector<Proposal> Step(const JobView& view) = 0;
};

}  // namespace muster::scaler
