#pragma once

#include <optional>
#include <string>

#include "host/messages.h"
#include "host/processes/cgroup.h"
#include "host/processes/supervise.h"

namespace muster {

/// What is known of the end of a node's only life in a container.
struct ContainerEnd {
  std::string node;
  SuperviseReport exited;
  std::optional<SlotRecord> slot;
  std::string last_words;
  /// Of the container's control group, before the command began and after it ended; none: it
  /// cannot be read.
  std::optional<CgroupUsage> before;
  std::optional<CgroupUsage> after;
};

/// The exit, as the scaler's host reports it. A SIGKILL, or an exit that a killed child caused, is
/// the kernel's if the group counts one more kill for memory. Pure.
NodeExited ExitOf(const ContainerEnd& end);

/// The exit of a node whose command could not be started, by a wrong input of `muster node` or of
/// its environment: `code`, and why. Pure.
NodeExited NotRun(const std::string& node, int code, const std::string& why);

}  // namespace muster
