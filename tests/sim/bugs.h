#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/planted_bug.h"

namespace muster::sim {

const PlantedBugText& TextOf(PlantedBug bug);
/// Within how many seeds, from seed 1 on, the simulation must see the bug.
uint64_t SeedsMaxOf(PlantedBug bug);

struct FoundBug {
  PlantedBug bug = PlantedBug::kNone;
  uint64_t seed = 0;  // the first that shows it; 0: none did
  std::string kind;   // as what
};
/// Looks for every planted bug, in the order of the list, each in its own processes.
std::vector<FoundBug> FindAllBugs(uint32_t jobs);

}  // namespace muster::sim
