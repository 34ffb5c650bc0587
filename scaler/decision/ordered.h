#pragma once

#include <cstdint>
#include <optional>

#include "scaler/model/job_view.h"
#include "scaler/model/orders.h"

namespace muster::scaler {

/// An order for the keeper of nodes, and the event, already durable, that says why.
struct Ordered {
  uint64_t event_id = 0;
  Order order;
  /// For JobView::taken, after it was carried out; none if it is not relevant there.
  std::optional<ActionTaken> taken;
};

}  // namespace muster::scaler
