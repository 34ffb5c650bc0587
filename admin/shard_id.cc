#include "admin/shard_id.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace muster {

absl::StatusOr<v1::ShardId> ParseShardId(const std::string& text) {
  uint64_t parts[3] = {};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    const bool last = i == 2;
    if (error != std::errc() || (last ? next != end : next == end || *next != '/') ||
        (!last && parts[i] > UINT32_MAX)) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' is no shard id; write dataset/epoch/index by number, as `muster shards` prints it: "
          "0/1/17",
          text));
    }
    at = last ? next : next + 1;
  }
  v1::ShardId id;
  id.set_dataset(static_cast<uint32_t>(parts[0]));
  id.set_epoch(static_cast<uint32_t>(parts[1]));
  id.set_index(parts[2]);
  return id;
}

std::string ShardIdToText(const v1::ShardId& id) {
  return fmt::format("{}/{}/{}", id.dataset(), id.epoch(), id.index());
}

}  // namespace muster
