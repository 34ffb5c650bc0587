#pragma once

#include <cstdint>
#include <optional>

#include "scaler/model/job_view.h"
#include "scaler/model/orders.h"

namespace muster::scaler {

/// An order for the keeper of nodes. The event with this id is already durable and says why.
struct Ordered {
  uint64_t event_id = 0;
  Order order;
  /// Goes into JobView::taken when the order was carried out. None if views do not show the order.
  std::optional<ActionTaken> taken;
};

}  // namespace muster::scaler
