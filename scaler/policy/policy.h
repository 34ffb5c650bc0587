#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "scaler/model/job_view.h"

namespace muster::scaler {

/// A figure that a decision is based on, and the time over which it was measured (0 = one moment).
struct Evidence {
  std::string name;
  double value = 0;
  std::string unit;
  std::chrono::seconds window{0};
};

/// What an action changes: a node's limits, the number of workers, or nothing that can be counted.
using Amount = std::variant<std::monostate, Resources, uint32_t>;

/// An action that a policy proposes, and why.
struct Proposal {
  /// kRepair: the node is down, or the job cannot continue, so nothing that works is disturbed.
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
  /// Further lines for the reason of a job that is stopped. Each begins with a line break. May be
  /// empty.
  std::string details;
  std::string ended;  // the node whose end this answers; "": none
};

/// Adds evidence from PSI if it is known (not negative).
void AddPressure(const std::string& name, double percent, Proposal* proposal);

/// One reason to act. A policy repeats a proposal while its reason holds and no action was taken
/// (JobView::taken lists them). The Arbiter decides which actions are taken, and how often.
///
/// Deterministic: it depends on its state and its inputs only, without a clock or randomness. A
/// value with one owner; not thread-safe.
class Policy {
 public:
  virtual ~Policy() = default;
  /// Such as "out-of-memory". Events contain it, and a user pauses the policy by it.
  virtual std::string name() const = 0;
  /// Call it about once a second. `now` of the views must never go back.
  virtual std::vector<Proposal> Step(const JobView& view) = 0;
};

}  // namespace muster::scaler
