#include "tests/sim/bugs.h"

#include <algorithm>

#include "base/check.h"
#include "tests/sim/runner.h"

namespace muster::sim {
namespace {

constexpr uint64_t kSeedsMax = 2'000;

}  // namespace

const PlantedBugText& TextOf(PlantedBug bug) {
  const auto text = std::ranges::find(kPlantedBugs, bug, &PlantedBugText::bug);
  MUSTER_CHECK(text != std::end(kPlantedBugs));
  return *text;
}

uint64_t SeedsMaxOf(PlantedBug) {
  return kSeedsMax;
}

std::vector<FoundBug> FindAllBugs(uint32_t jobs) {
  std::vector<FoundBug> all;
  for (const PlantedBugText& text : kPlantedBugs) {
    const Summary summary = Sweep({.first = 1,
                                   .seeds = SeedsMaxOf(text.bug),
                                   .jobs = jobs,
                                   .bug = text.bug,
                                   .stop_at_first = true});
    FoundBug found{.bug = text.bug};
    if (!summary.violations.empty()) {
      found.seed = summary.violations.front().seed;
      found.kind = summary.violations.front().kind;
    }
    all.push_back(found);
  }
  return all;
}

}  // namespace muster::sim
