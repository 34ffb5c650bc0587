#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "host/resources.h"

namespace muster {

/// What this process and everything that it starts may use together. This is the processors on
/// which it may run and the machine's memory, or less if one of its control groups allows less, as
/// in a container. An unknown figure is 0. `root` is put before every path, so that tests can use
/// their own trees.
Resources MachineResources(const std::string& root = "");

/// The idle time of the processors on which this process may run, summed since the machine was
/// started, whichever programs use them. None if the kernel does not report it.
std::optional<std::chrono::microseconds> MachineIdle(const std::string& root = "");

}  // namespace muster
