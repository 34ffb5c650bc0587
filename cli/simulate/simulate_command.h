#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/show/output.h"
#include "scaler/simulate/simulation.h"

namespace muster::simulate {

struct SimulateOptions {
  std::string history;    // a folder of files history-*.jsonl, or a state directory that has one
  std::string described;  // a file; either this or `history` is given
  std::string job_file;   // thresholds come from it; "": the defaults
  std::vector<std::string> policies;  // only these; none: all
  bool dry_run = false;
  std::string from;  // the part of a history to use; "": from its beginning
  std::string to;    // "": to its end
  OutputFormat output = OutputFormat::kText;
};

/// Parses "10m", which means that long after `begin`, or a time in the form of `muster events`,
/// "2026-01-31T12:34:56Z". InvalidArgument if it is neither.
absl::StatusOr<WallTime> ParseMoment(std::string_view text, WallTime begin);

/// Takes the thresholds of the job file, and pauses all policies that are not named. Errors: those
/// of the job file; InvalidArgument for a policy that does not exist.
absl::StatusOr<scaler::SimulationOptions> SimulationOptionsOf(const SimulateOptions& options);

/// `muster simulate`. Returns the exit code.
int SimulateCommand(const SimulateOptions& options);

}  // namespace muster::simulate
