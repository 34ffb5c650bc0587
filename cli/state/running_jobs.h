#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/state/state_directory.h"

namespace muster {

/// If `path` is the file of a StateLock, its state directory.
std::optional<std::string> StateDirectoryOfLock(std::string_view path);

/// What this user can see of the jobs on this machine.
struct RunningJobs {
  /// They are ordered by path. All processes of a run hold the lock of its state directory.
  std::vector<StateDirectory> states;
  /// The number of `muster` processes of other users, whose files this user may not see.
  size_t hidden = 0;
};
/// Reads /proc.
RunningJobs FindRunningJobs();

/// "On this machine runs: flights (state directory /data/state)", or a text that no job runs. Names
/// come from run/endpoint.json. If that file is missing, the job has no master yet, or none any
/// more.
std::string RunningJobsText(const RunningJobs& jobs);

}  // namespace muster
