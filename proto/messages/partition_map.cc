#include "proto/messages/partition_map.h"

#include <algorithm>

namespace muster {

std::optional<PartitionMap> WithChanges(const PartitionMap& map,
                                        const PartitionMapChanges& changes) {
  PartitionMap after = map;
  after.version = changes.version;
  after.restore_epoch = changes.restore_epoch;
  for (const PartitionChange& change : changes.partitions) {
    if (change.partition.value() >= after.partitions.size()) return std::nullopt;
    after.partitions[change.partition.value()] = change.entry;
  }
  for (const ServerEndpoint& server : changes.servers) {
    const auto known = std::ranges::find(after.servers, server.id, &ServerEndpoint::id);
    if (known != after.servers.end()) {
      *known = server;
    } else {
      after.servers.push_back(server);
    }
  }
  if (after.servers.size() > most::kServers) return std::nullopt;
  std::ranges::sort(after.servers, {}, &ServerEndpoint::id);
  return after;
}

}  // namespace muster
