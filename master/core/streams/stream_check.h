#pragma once

#include "absl/status/status.h"
#include "master/core/durable_state.h"

namespace muster {

/// kDataLoss unless every shard of the stream has a range or is COMMITTED.
absl::Status CheckStreamComplete(const StreamRecord& stream, const DurableState& state);

/// kDataLoss unless all ranges lie within the cut part of their topic partitions, without overlaps.
absl::Status CheckStreamShards(const DurableState& state);

}  // namespace muster
