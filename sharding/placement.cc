#include "sharding/placement.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace muster {
namespace {

/// How many partitions each server should own. If the number does not divide evenly, the servers
/// that now own most get the rest.
std::map<ServerId, uint32_t> Quotas(const std::map<ServerId, uint32_t>& owned,
                                    uint32_t partition_count) {
  std::vector<std::pair<ServerId, uint32_t>> by_load(owned.begin(), owned.end());
  std::stable_sort(by_load.begin(), by_load.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto servers = static_cast<uint32_t>(by_load.size());
  uint32_t extra = partition_count % servers;
  std::map<ServerId, uint32_t> quotas;
  for (const auto& [server, count] : by_load) {
    quotas[server] = partition_count / servers + (extra > 0 ? 1 : 0);
    if (extra > 0) --extra;
  }
  MUSTER_CHECK(extra == 0);
  return quotas;
}

}  // namespace

std::vector<ServerId> Place(std::span<const std::optional<ServerId>> current,
                            std::span<const ServerId> servers, uint32_t partition_count) {
  MUSTER_CHECK(!servers.empty());
  MUSTER_CHECK(current.empty() || current.size() == partition_count);
  std::map<ServerId, uint32_t> owned;
  for (const ServerId server : servers) owned[server] = 0;
  MUSTER_CHECK_MSG(owned.size() == servers.size(), "a server is named twice");
  for (const auto& owner : current) {
    if (owner && owned.contains(*owner)) ++owned[*owner];
  }

  std::map<ServerId, uint32_t> room = Quotas(owned, partition_count);
  std::vector<std::optional<ServerId>> placed(partition_count);
  for (uint32_t partition = 0; partition < current.size(); ++partition) {
    const auto& owner = current[partition];
    const auto place = owner ? room.find(*owner) : room.end();
    if (place == room.end() || place->second == 0) continue;
    placed[partition] = *owner;
    --place->second;
  }
  std::vector<ServerId> result(partition_count);
  auto next = room.begin();
  for (uint32_t partition = 0; partition < partition_count; ++partition) {
    if (!placed[partition]) {
      while (next != room.end() && next->second == 0) ++next;
      MUSTER_CHECK(next != room.end());
      placed[partition] = next->first;
      --next->second;
    }
    result[partition] = *placed[partition];
  }
  // Every quota is used up: loads differ by at most one.
  for (const auto& [server, left] : room) MUSTER_CHECK_MSG(left == 0, ToString(server));
  return result;
}

}  // namespace muster
