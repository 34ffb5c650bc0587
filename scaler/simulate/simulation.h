#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scaler/history/history_reader.h"
#include "scaler/model/model.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policies.h"
#include "scaler/simulate/described_spec.h"

/// What the real policies would decide: over a recorded history, or in a described job.
namespace muster::scaler {

struct SimulationOptions {
  PolicyOptions policies;
  Arbiter::Options arbiter;
  std::set<std::string> paused;  // by name
};

struct Simulation {
  static constexpr size_t kEventsMax = 100'000;

  /// As a scaler would have told them (docs/rest.md), oldest first; ids from 1. `wall_us` is the
  /// time since the beginning of a described job.
  std::vector<rest::Event> events;
  uint64_t events_left_out = 0;  // beyond kEventsMax
  /// What was decided, and held back, by policy.
  std::vector<rest::Policy> policies;
  uint64_t begin_wall_us = 0;
  uint64_t end_wall_us = 0;
  uint64_t steps = 0;  // views
  uint32_t runs = 0;   // of the job; policies start again with each
  uint64_t records_trained = 0;
  /// Of a described job.
  uint32_t kills_for_memory = 0;
  std::string failure;  // why it was stopped; "": it was not
};

/// The policies in closed loop with the described job: what they decide is done. Virtual time: an
/// hour takes a moment. Errors: CheckDescribed.
absl::StatusOr<Simulation> Simulate(const DescribedSpec& spec, const SimulationOptions& options);

struct ReplaySpan {
  std::optional<WallTime> from;
  std::optional<WallTime> to;
};
/// The policies over the views of a history. What they decide changes nothing there, so outcomes
/// are left out; policies are told that it was done, and not what was done in truth.
Simulation Replay(HistoryReader* history, const ReplaySpan& span, const SimulationOptions& options);

}  // namespace muster::scaler
