#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/planted/planted_bug.h"
#include "tests/sim/world.h"

namespace muster::sim {

struct Violation {
  uint64_t seed = 0;
  std::string kind;  // "abort": the process ended itself; "hang": it did not end
  std::string text;
};

/// The result of many seeds; the same for every number of jobs.
struct Summary {
  uint64_t seeds = 0;
  uint64_t hash = 0;  // over all traces
  double simulated_s = 0;
  uint64_t deliveries = 0;
  uint64_t crashes = 0;
  uint64_t violation_count = 0;
  std::vector<Violation> violations;  // the first eight of every job, by seed
  Probes probes;
};

/// A removed rule, and its weakening; either may be none.
struct Plant {
  PlantedBug bug = PlantedBug::kNone;
  Weakening weakening = Weakening::kNone;
};
const PlantedBugText& TextOf(PlantedBug bug);
const WeakeningText& TextOf(Weakening weakening);

/// A seed that takes longer is a violation, "hang". Measured with the machine's clock, so it is far
/// above the time of any seed on a busy machine.
inline constexpr std::chrono::seconds kSeedMax{300};
struct SweepOptions {
  uint64_t first = 1;
  uint64_t seeds = 1;
  uint32_t jobs = 1;
  Plant plant;
  /// The violation with the least seed is enough.
  bool stop_at_first = false;
  /// Another thing to run than Simulate: for tests of Sweep.
  std::function<RunResult(const RunOptions&)> simulate = Simulate;
};
/// Runs every seed in [first, first + seeds), in `jobs` processes, which survive the abort and the
/// hang of any.
Summary Sweep(const SweepOptions& options);

/// One seed in a process of its own, so that an abort, or a hang, is a violation like others.
std::optional<Violation> RunAlone(const RunOptions& options, const Plant& plant);

/// A failing seed with as few faults as could be found in `runs_max` runs that fail alike. What
/// hangs is left as it is: every run would take kSeedMax. `from` may leave out faults from the
/// beginning.
struct Minimised {
  RunOptions options;
  std::vector<std::string> faults;  // what is left, as text
  uint64_t runs = 0;
};
Minimised Minimise(const Violation& violation, const Plant& plant, uint64_t runs_max,
                   const RunOptions& from = {});
/// One of each kind, with the smallest seed.
std::vector<Violation> OneOfEachKind(const std::vector<Violation>& violations);

/// In how many seeds a weakening must do no harm.
inline constexpr uint64_t kWeakenedSeeds = 2'000;
struct FoundBug {
  uint64_t seed = 0;  // the first seed that shows it; 0: none did
  std::string kind;   // as what
};
/// Looks for a violation in the seeds from 1 to `seeds`; the answer does not depend on the number
/// of jobs.
FoundBug Find(const Plant& plant, uint64_t seeds, uint32_t jobs);

}  // namespace muster::sim
