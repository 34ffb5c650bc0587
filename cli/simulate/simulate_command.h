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
  std::string described;  // a file; one of the two
  std::string job_file;   // its thresholds; "": the policies' own
  std::vector<std::string> policies;  // only these; none: all
  bool dry_run = false;
  std::string from;  // of a history; "": its beginning
  std::string to;    // "": its end
  OutputFormat output = OutputFormat::kText;
};

/// "10m": so long after `begin`; or a time as muster events shows it, "2026-01-31T12:34:56Z".
/// InvalidArgument when it is neither.
absl::StatusOr<WallTime> ParseMoment(std::string_view text, WallTime begin);

/// Thresholds of the job file, and only the policies named: all others are paused. Errors: those of
/// the job file; InvalidArgument for a policy that there is not.
absl::StatusOr<scaler::SimulationOptions> SimulationOptionsOf(const SimulateOptions& options);

/// `muster simulate`. Returns the exit code.
int SimulateCommand(const SimulateOptions& options);

}  // namespace muster::simulate
