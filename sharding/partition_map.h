#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sharding/types.h"

namespace muster {

/// Who owns a partition, and how that ownership began (docs/protocol.md section 5).
struct PartitionEntry {
  ServerId owner;
  ServerIncarnation owner_incarnation;
  OwnerEpoch epoch;
  /// A state that the owner serves is still the truth when it is of an epoch >= since.
  OwnerEpoch since;
  /// Otherwise an incoming copy of exactly this epoch is (0 = none; moves only).
  OwnerEpoch copy;
  /// Otherwise the manifest's snapshot is, when this is set.
  bool restored = false;
  /// R when it last came back from an older state: what it confirmed under an older R is doubtful.
  RestoreEpoch restored_at;
  friend bool operator==(const PartitionEntry&, const PartitionEntry&) = default;
};

/// Where a server listens. A server has one lane per thread; partition P is served by lane P %
/// lanes.size().
struct ServerEndpoint {
  ServerId id;
  ServerIncarnation incarnation;
  std::string name;
  /// For every lane its addresses, best first: "unix:/path" (usable where the path exists) or
  /// "127.0.0.1:port".
  std::vector<std::vector<std::string>> lanes;
  friend bool operator==(const ServerEndpoint&, const ServerEndpoint&) = default;
};

/// The partition map as workers see it. A value.
struct PartitionMap {
  MapVersion version;
  RestoreEpoch restore_epoch;
  /// Indexed by PartitionId.
  std::vector<PartitionEntry> partitions;
  std::vector<ServerEndpoint> servers;
  friend bool operator==(const PartitionMap&, const PartitionMap&) = default;
};

}  // namespace muster
