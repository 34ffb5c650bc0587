#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "scaler/core/orders.h"
#include "scaler/policy/job_view.h"

namespace muster::scaler {

/// The stacks of all threads of a node's process are to be written into its log.
struct DumpStacks {
  std::string node;
};

/// What is to be done: by the keeper of nodes, but for DumpStacks, which the launcher does.
using Order = std::variant<LimitNode, RelaunchNode, ScaleWorkers, EndNode, FailJob, PausePolicies,
                           DumpStacks>;

/// An order and the event, already durable, that says why.
struct Ordered {
  uint64_t event_id = 0;
  Order order;
  /// For JobView::taken, when it has been carried out; nothing when it is of no interest there.
  std::optional<ActionTaken> taken;
};

}  // namespace muster::scaler
