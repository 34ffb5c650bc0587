#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/words/types.h"

namespace muster {

/// Which server owns each partition. Loads differ by at most one, and as few partitions as possible
/// leave a server that stays. Used at the start, on resume with another number of servers, and when
/// a server is given up.
///
/// `current`: the owner of each partition, none if it has no owner or the owner is gone; empty at
/// the start, otherwise of length `partition_count`. An owner that is not in `servers` counts as
/// gone. `servers`: at least one, each once. Returns the owner of each partition. Pure and
/// deterministic.
///
/// Servers fill up in runs of neighbouring partitions: a server's lane is partition mod lanes, so
/// if servers got partitions in turn, some lanes would be empty.
std::vector<ServerId> Place(std::span<const std::optional<ServerId>> current,
                            std::span<const ServerId> servers, uint32_t partition_count);

}  // namespace muster
