#include "scaler/simulate/simulation.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "base/status.h"
#include "scaler/decision/decider.h"
#include "scaler/simulate/described_job.h"

namespace muster::scaler {
namespace {

using std::chrono::microseconds;

uint64_t Micros(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<microseconds>(time).count());
}

/// Takes a decider's events. It numbers them, dates them with virtual time, and keeps a bounded
/// number.
class EventBook {
 public:
  EventBook(Simulation* simulation, bool outcomes) : simulation_(simulation), outcomes_(outcomes) {}
  void SetTime(uint64_t wall_us) { wall_us_ = wall_us; }

  rest::Event Add(rest::Event event) {
    event.wall_us = wall_us_;
    if (event.kind == "outcome" && !outcomes_) return event;
    event.id = ++last_id_;
    if (simulation_->events.size() < Simulation::kEventsMax) {
      simulation_->events.push_back(event);
    } else {
      ++simulation_->events_left_out;
    }
    return event;
  }

 private:
  Simulation* const simulation_;
  const bool outcomes_;
  uint64_t wall_us_ = 0;
  uint64_t last_id_ = 0;
};

std::unique_ptr<Decider> MakeDecider(const SimulationOptions& options, EventBook* book) {
  return std::make_unique<Decider>(
      Decider::Options{.policies = options.policies,
                       .arbiter = options.arbiter,
                       .outcomes = {},
                       .paused = options.paused},
      [book](rest::Event event) { return book->Add(std::move(event)); });
}

/// Adds up the counts of the deciders. Each run has one.
void CountPolicies(const Decider& decider, Simulation* simulation) {
  std::vector<rest::Policy> policies = decider.policies();
  for (size_t i = 0; i < policies.size() && i < simulation->policies.size(); ++i) {
    policies[i].decisions += simulation->policies[i].decisions;
    policies[i].refused += simulation->policies[i].refused;
  }
  simulation->policies = std::move(policies);
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const DescribedSpec& spec, const SimulationOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckDescribed(spec));
  Simulation simulation{.runs = 1};
  EventBook book(&simulation, true);
  const std::unique_ptr<Decider> decider = MakeDecider(options, &book);
  DescribedJob job(spec);
  while (!job.over()) {
    job.Tick();
    ++simulation.steps;
    book.SetTime(Micros(job.elapsed()));
    for (const Ordered& ordered : decider->Step(job.view())) {
      std::visit([&job](const auto& order) { job.CarryOut(order); }, ordered.order);
      if (ordered.taken.has_value()) job.Took(*ordered.taken);
    }
  }
  CountPolicies(*decider, &simulation);
  simulation.end_wall_us = Micros(job.elapsed());
  simulation.records_trained = job.view().records_trained;
  simulation.kills_for_memory = job.kills_for_memory();
  simulation.failure = job.failure();
  return simulation;
}

Simulation Replay(HistoryReader* history, const ReplaySpan& span,
                  const SimulationOptions& options) {
  Simulation simulation;
  EventBook book(&simulation, false);
  std::unique_ptr<Decider> decider;
  std::vector<ActionTaken> taken;
  uint64_t records_before = 0;
  while (JobView* view = history->Next()) {
    const std::chrono::nanoseconds at = view->now.time_since_epoch();
    if (span.from.has_value() && at < *span.from) continue;
    if (span.to.has_value() && at > *span.to) break;
    if (decider == nullptr || history->begins_run()) {
      if (decider != nullptr) CountPolicies(*decider, &simulation);
      decider = MakeDecider(options, &book);
      taken.clear();
      ++simulation.runs;
      records_before = view->records_trained;
    }
    view->taken = std::exchange(taken, {});
    if (simulation.steps++ == 0) simulation.begin_wall_us = Micros(at);
    simulation.end_wall_us = Micros(at);
    // Each scaler's totals start again at 0.
    simulation.records_trained +=
        view->records_trained - std::min(view->records_trained, records_before);
    records_before = view->records_trained;
    book.SetTime(Micros(at));
    for (const Ordered& ordered : decider->Step(*view)) {
      if (ordered.taken.has_value()) taken.push_back(*ordered.taken);
    }
  }
  if (decider != nullptr) CountPolicies(*decider, &simulation);
  return simulation;
}

}  // namespace muster::scaler
