#pragma once

#include <CLI/CLI.hpp>

#include "cli/simulate/simulate_command.h"

namespace muster {

/// simulate: puts its exit code into `exit_code`. Both pointers outlive the parsing of the line.
void AddSimulateVerb(CLI::App* app, simulate::SimulateOptions* options, int* exit_code);

}  // namespace muster
