#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "base/words/types.h"

namespace muster {

/// Who owns a partition, and how that ownership began (docs/protocol.md section 5).
struct PartitionEntry {
  ServerId owner;
  ServerIncarnation owner_incarnation;
  OwnerEpoch epoch;
  /// A state that the owner serves is still valid if its epoch is >= since.
  OwnerEpoch since;
  /// Otherwise, an incoming copy of exactly this epoch is valid (0 = none; moves only).
  OwnerEpoch copy;
  /// Otherwise, the manifest's snapshot is valid if this is set.
  bool restored = false;
  /// R when it last came back from an older state: what it confirmed under an older R is doubtful.
  RestoreEpoch restored_at;
  static void Fields(auto& f, auto& s) {
    f(1, "owner", s.owner);
    f(2, "owner_incarnation", s.owner_incarnation);
    f(3, "epoch", s.epoch);
    f(4, "since", s.since);
    f(5, "copy", s.copy);
    f(6, "restored", s.restored);
    f(7, "restored_at", s.restored_at);
  }
  friend bool operator==(const PartitionEntry&, const PartitionEntry&) = default;
};

/// A list of lanes in a message.
inline constexpr auto kLanesField = [](auto& f, uint32_t number, auto& lanes) {
  f(number, "lanes", lanes,
    {.most = most::kLanes,
     .text_most = most::kNameBytes,
     .inner_most = most::kAddressesOfLane,
     .inner = "addresses"});
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
  static void Fields(auto& f, auto& s) {
    f(1, "id", s.id);
    f(2, "incarnation", s.incarnation);
    f(3, "name", s.name, {.most = most::kNameBytes});
    kLanesField(f, 4, s.lanes);
  }
  friend bool operator==(const ServerEndpoint&, const ServerEndpoint&) = default;
};

/// The partition map as workers see it. A value.
struct PartitionMap {
  MapVersion version;
  RestoreEpoch restore_epoch;
  /// Indexed by PartitionId.
  std::vector<PartitionEntry> partitions;
  /// By id.
  std::vector<ServerEndpoint> servers;
  static void Fields(auto& f, auto& s) {
    f(1, "version", s.version);
    f(2, "restore_epoch", s.restore_epoch);
    f(3, "partitions", s.partitions, {.most = most::kPartitions});
    f(4, "servers", s.servers, {.most = most::kServers});
  }
  friend bool operator==(const PartitionMap&, const PartitionMap&) = default;
};

struct PartitionChange {
  PartitionId partition;
  PartitionEntry entry;
  static void Fields(auto& f, auto& s) {
    f(1, "partition", s.partition, {.most = most::kPartitions - 1});
    f(2, "entry", s.entry);
  }
  friend bool operator==(const PartitionChange&, const PartitionChange&) = default;
};

/// The difference from the map of version `base`: whole entries and endpoints of the newer map.
struct PartitionMapChanges {
  MapVersion base;
  MapVersion version;
  RestoreEpoch restore_epoch;
  std::vector<PartitionChange> partitions;
  std::vector<ServerEndpoint> servers;
  static void Fields(auto& f, auto& s) {
    f(1, "base", s.base);
    f(2, "version", s.version);
    f(3, "restore_epoch", s.restore_epoch);
    f(4, "partitions", s.partitions, {.most = most::kPartitions});
    f(5, "servers", s.servers, {.most = most::kServers});
  }
  friend bool operator==(const PartitionMapChanges&, const PartitionMapChanges&) = default;
};

/// The map with the changes, which begin at its version or at an older one. None when they name a
/// partition that the map does not have, or make it larger than a map may be.
std::optional<PartitionMap> WithChanges(const PartitionMap& map,
                                        const PartitionMapChanges& changes);

}  // namespace muster
