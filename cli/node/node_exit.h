#pragma once

#include <optional>
#include <string>

#include "host/messages.h"
#include "host/processes/cgroup.h"
#include "host/processes/supervise.h"

namespace muster {

/// What is known about the end of a node whose container has only one life.
struct ContainerEnd {
  std::string node;
  SuperviseReport exited;
  std::optional<SlotRecord> slot;
  std::string last_words;
  /// Figures of the container's control group, before the command began and after it ended. None if
  /// they cannot be read.
  std::optional<CgroupUsage> before;
  std::optional<CgroupUsage> after;
};

/// The exit in the form that the scaler's host reports. A SIGKILL, or an exit because of a killed
/// child, is the kernel's kill for memory if the group counts one more such kill. Pure.
NodeExited ExitOf(const ContainerEnd& end);

/// The exit of a node whose command could not be started because the input of `muster node` or its
/// environment is wrong. It has `code`, and the reason. Pure.
NodeExited NotRun(const std::string& node, int code, const std::string& why);

}  // namespace muster
