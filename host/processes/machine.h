#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "host/resources.h"

namespace muster {

/// What this process and all that it starts may use together: the processors that it may run on,
/// and the machine's memory; less where a control group that it is in allows less (a container). A
/// figure that cannot be had is 0. `root` is put before every path: tests have trees of their own.
Resources MachineResources(const std::string& root = "");

/// How long the processors that this process may run on have had nothing to do, summed over them,
/// since the machine was started: whoever uses them, this job or another program. Nothing when the
/// kernel does not tell.
std::optional<std::chrono::microseconds> MachineIdle(const std::string& root = "");

}  // namespace muster
