#include "scaler/model/job_view.h"

#include "scaler/model/orders.h"

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
    case EndCause::kDisrupted:
      return "disrupted";
    case EndCause::kClean:
      break;
  }
  return "clean";
}

std::string ToString(Action action) {
  return std::string(AllActions().at(static_cast<size_t>(action)).name);
}

const NodeView* FindNode(const JobView& view, const std::string& name) {
  for (const NodeView& node : view.nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

}  // namespace muster::scaler
