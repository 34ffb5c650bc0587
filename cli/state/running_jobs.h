#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/state/state_directory.h"

namespace muster {

/// The state directory whose StateLock is the file `path`. Nothing: it is another file.
std::optional<std::string> StateDirectoryOfLock(std::string_view path);

/// What can be seen of the jobs that run on this machine.
struct RunningJobs {
  /// Ordered by path. The processes of a run hold the lock of its state directory.
  std::vector<StateDirectory> states;
  /// `muster` processes of other users, whose files this user may not see.
  size_t hidden = 0;
};
/// Reads /proc.
RunningJobs FindRunningJobs();

/// "On this machine runs: flights (state directory /data/state)", or that no job runs. The names
/// are those of run/endpoint.json. Without that file, the job has no master yet, or none any more.
std::string RunningJobsText(const RunningJobs& jobs);

}  // namespace muster
