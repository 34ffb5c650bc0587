#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "scaler/simulate/simulation.h"

/// What `muster simulate` prints. Pure.
namespace muster::simulate {

/// Times are wall time, or of a described job since its beginning.
enum class TimeShown : uint8_t { kWall, kSinceBeginning };

/// A line per event, with the evidence of decisions below; then what each policy decided.
std::string SimulationText(const scaler::Simulation& simulation, TimeShown times);
/// docs/cli.md has the shape.
nlohmann::json SimulationToJson(const scaler::Simulation& simulation, TimeShown times);

}  // namespace muster::simulate
