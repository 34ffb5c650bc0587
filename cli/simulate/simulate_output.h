#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "scaler/simulate/simulation.h"

/// The output of `muster simulate`. Pure.
namespace muster::simulate {

/// Times are wall time, or for a described job the time since its beginning.
enum class TimeShown : uint8_t { kWall, kSinceBeginning };

/// A line for each event, with the evidence of decisions below it, and then what each policy
/// decided.
std::string SimulationText(const scaler::Simulation& simulation, TimeShown times);
/// docs/cli.md describes it.
nlohmann::json SimulationToJson(const scaler::Simulation& simulation, TimeShown times);

}  // namespace muster::simulate
