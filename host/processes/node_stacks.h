#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

/// The processes of every node of a run. Of each node, its first process comes first. They are
/// found below `run`, the pid of `muster run`, by the command lines of their `muster supervise`. So
/// no process needs to answer. Nodes without a process are left out.
std::map<std::string, std::vector<pid_t>> ProcessesOfNodes(pid_t run);

/// Prints the stacks of all threads of these processes, line by line (host/stacks/stacks.h). Each
/// thread is stopped for some milliseconds. DeadlineExceeded if it took longer than `limit`; what
/// could be printed was printed. Internal if it ended too early. Requires: the calling process has
/// one thread.
absl::Status PrintStacksOf(const std::vector<pid_t>& pids, std::chrono::milliseconds limit,
                           const std::function<void(const std::string& line)>& print);

}  // namespace muster
