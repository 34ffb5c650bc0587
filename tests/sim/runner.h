#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/planted_bug.h"
#include "tests/sim/world.h"

namespace muster::sim {

struct Violation {
  uint64_t seed = 0;
  std::string kind;  // "abort": the process ended itself
  std::string text;
};

/// What many seeds came to. The same for every number of jobs.
struct Summary {
  uint64_t seeds = 0;
  uint64_t hash = 0;  // over all traces
  double simulated_s = 0;
  uint64_t deliveries = 0;
  uint64_t crashes = 0;
  uint64_t violation_count = 0;
  std::vector<Violation> violations;  // the first of every job, by seed
  Probes probes;
};

/// A rule taken out, and what it is planted with; either may be none.
struct Plant {
  PlantedBug bug = PlantedBug::kNone;
  Weakening weakening = Weakening::kNone;
};
const PlantedBugText& TextOf(PlantedBug bug);
const WeakeningText& TextOf(Weakening weakening);

struct SweepOptions {
  uint64_t first = 1;
  uint64_t seeds = 1;
  uint32_t jobs = 1;
  Plant plant;
  /// The violation with the least seed is enough.
  bool stop_at_first = false;
};
/// Runs every seed in [first, first + seeds), in `jobs` processes, which survive the abort of any.
Summary Sweep(const SweepOptions& options);

/// One seed in a process of its own, so that an abort is a violation like others.
std::optional<Violation> RunAlone(const RunOptions& options, const Plant& plant);

/// A failing seed with as few faults as could be found in `runs_max` runs that fail alike.
struct Minimised {
  RunOptions options;
  std::vector<std::string> faults;  // what is left, as text
  uint64_t runs = 0;
};
Minimised Minimise(const Violation& violation, const Plant& plant, uint64_t runs_max);

/// In how many seeds a weakening must do no harm.
inline constexpr uint64_t kWeakenedSeeds = 2'000;
struct FoundBug {
  uint64_t seed = 0;  // the first that shows it; 0: none did
  std::string kind;   // as what
};
/// Looks for a violation in the seeds from 1 to `seeds`; the answer does not depend on the number
/// of jobs.
FoundBug Find(const Plant& plant, uint64_t seeds, uint32_t jobs);

}  // namespace muster::sim
