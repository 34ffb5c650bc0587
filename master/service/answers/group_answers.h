#pragma once

#include <optional>

#include "master/core/master_core.h"
#include "proto/status/group_status.h"

/// The view of a synchronous group for operators. Read-only. Internal to master/service.
namespace muster {

/// None: the job has no group.
std::optional<GroupStatus> GroupOf(const MasterCore& core);

}  // namespace muster
