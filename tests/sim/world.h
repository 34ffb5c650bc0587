#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "tests/sim/faults.h"
#include "tests/sim/probes.h"

namespace muster::sim {

struct RunOptions {
  uint64_t seed = 1;
  bool print = false;
  /// Faults of the plan that do not happen, by number, and parts of it, by name.
  std::set<size_t> without;
  std::set<std::string> without_parts;
};

struct RunResult {
  uint64_t hash = 0;
  /// Empty: everything held.
  std::string failure_kind;
  std::string failure;
  nanoseconds simulated{0};
  uint64_t deliveries = 0;
  uint64_t crashes = 0;
  uint64_t steps = 0;
  Probes probes;
};

/// One job in one simulated world, from its start to its end or to the first violation. A pure
/// function of its options.
RunResult Simulate(const RunOptions& options);

}  // namespace muster::sim
