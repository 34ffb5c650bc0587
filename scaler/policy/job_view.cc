#include "scaler/policy/job_view.h"

namespace muster::scaler {

std::string ToString(EndCause cause) {
  switch (cause) {
    case EndCause::kKernelOutOfMemory:
      return "kernel out of memory";
    case EndCause::kOwnOutOfMemory:
      return "own out-of-memory kill";
    case EndCause::kProgram:
      return "program";
    case EndCause::kPlatform:
      return "platform";
    case EndCause::kAsked:
      return "asked";
    case EndCause::kNotStarted:
      return "not started";
    case EndCause::kClean:
      break;
  }
  return "clean";
}

std::string ToString(Action action) {
  switch (action) {
    case Action::kRelaunch:
      return "relaunch";
    case Action::kSetLimits:
      return "set-limits";
    case Action::kSetWorkers:
      return "set-workers";
    case Action::kStopJob:
      return "stop-job";
    case Action::kDrain:
      return "drain";
    case Action::kDumpStacks:
      break;
  }
  return "dump-stacks";
}

const NodeView* FindNode(const JobView& view, const std::string& name) {
  for (const NodeView& node : view.nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

}  // namespace muster::scaler
