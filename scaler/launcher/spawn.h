#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// The environment of this process with `added` on top, as "NAME=value".
std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& added);

/// Starts `program` with `arguments` (the first is its own name). Of this process's descriptors
/// that are closed on exec, `inherited_fds` alone are passed on, those that are not negative. By
/// posix_spawn rather than fork: the caller may have threads (gRPC's), and fork handlers of
/// libraries must not run. The error names the program.
absl::StatusOr<pid_t> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const std::vector<int>& inherited_fds);

}  // namespace muster
