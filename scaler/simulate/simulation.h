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

/// Shows what the real policies would decide, over a recorded history or in a described job.
namespace muster::scaler {

struct SimulationOptions {
  PolicyOptions policies;
  Arbiter::Options arbiter;
  std::set<std::string> paused;  // by name
};

struct Simulation {
  static constexpr size_t kEventsMax = 100'000;

  /// The events that a scaler would have recorded (docs/rest.md), oldest first; ids from 1. For a
  /// described job, `wall_us` is the time since its beginning.
  std::vector<rest::Event> events;
  uint64_t events_left_out = 0;  // beyond kEventsMax
  /// By policy, how often it decided and was refused.
  std::vector<rest::Policy> policies;
  uint64_t begin_wall_us = 0;
  uint64_t end_wall_us = 0;
  uint64_t steps = 0;  // views
  uint32_t runs = 0;   // of the job; policies start again with each run
  uint64_t records_trained = 0;
  /// Only for a described job.
  uint32_t kills_for_memory = 0;
  std::string failure;  // why the job was stopped; "": it was not
};

/// Runs the policies in a closed loop with the described job, which carries out what they decide.
/// Time is virtual, so an hour takes a moment. Errors: see CheckDescribed.
absl::StatusOr<Simulation> Simulate(const DescribedSpec& spec, const SimulationOptions& options);

struct ReplaySpan {
  std::optional<WallTime> from;
  std::optional<WallTime> to;
};
/// Runs the policies over the views of a history. Their decisions change nothing there, so outcomes
/// are left out. The policies are told that their own decisions were carried out, and do not see
/// the real actions.
Simulation Replay(HistoryReader* history, const ReplaySpan& span, const SimulationOptions& options);

}  // namespace muster::scaler
