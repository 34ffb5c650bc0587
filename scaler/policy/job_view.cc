#include "scaler/policy/job_view.h"

#include "scaler/core/orders.h"

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
  static constexpr std::string_view kNames[] = {RelaunchNode::kAction, LimitNode::kAction,
                                                ScaleWorkers::kAction, FailJob::kAction,
                                                EndNode::kAction,      DumpStacks::kAction};
  return std::string(kNames[static_cast<size_t>(action)]);
}

const NodeView* FindNode(const JobView& view, const std::string& name) {
  for (const NodeView& node : view.nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

}  // namespace muster::scaler
