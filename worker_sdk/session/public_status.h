#pragma once

#include "base/status.h"
#include "muster/status.h"

namespace muster::internal {

/// A status as the public classes show it.
Status ToPublic(const absl::Status& status);

}  // namespace muster::internal
