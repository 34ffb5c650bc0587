#include "master/core/servers/map_teller.h"

#include <utility>

#include "proto/fields/encode.h"

namespace muster {
namespace {

/// Workers lag by a few versions; more bases than this are not worth the memory.
constexpr size_t kBasesMax = 64;

/// The R of a partition's last restore, as workers are told.
RestoreEpoch ToldRestore(const PartitionEntry& entry, const PlantedBugs& bugs) {
  return bugs.no_reverify ? RestoreEpoch() : entry.restored_at;
}

}  // namespace

const std::string& MapNews::Encoded() const {
  std::call_once(once_, [this] { encoded_ = fields::Encode(as_reply_); });
  return encoded_;
}

std::shared_ptr<const MapNews> MapTeller::For(MapVersion have, MapVersion base) {
  const PartitionTable& partitions = books_->partitions;
  if (have >= partitions.version()) return nullptr;
  if (std::exchange(version_, partitions.version()) != partitions.version()) news_.clear();
  if (base >= partitions.version() || !partitions.KnowsChangesSince(base)) base = MapVersion();
  if (news_.size() >= kBasesMax && !news_.contains(base)) news_.clear();
  std::shared_ptr<const MapNews>& news = news_[base];
  if (news == nullptr) {
    news = base == MapVersion() ? std::make_shared<const MapNews>(Whole())
                                : std::make_shared<const MapNews>(ChangesSince(base));
  }
  partitions_->Told();
  return news;
}

PartitionEntry MapTeller::ToldEntry(PartitionId id) const {
  PartitionEntry entry = books_->partitions.entry(id);
  entry.restored_at = ToldRestore(entry, books_->options.planted_bugs);
  return entry;
}

PartitionMap MapTeller::Whole() const {
  const PartitionTable& partitions = books_->partitions;
  PartitionMap map{partitions.version(), partitions.restore_epoch(), {}, books_->nodes.Endpoints()};
  map.partitions.reserve(partitions.size());
  for (uint32_t id = 0; id < partitions.size(); ++id) {
    map.partitions.push_back(ToldEntry(PartitionId(id)));
  }
  return map;
}

PartitionMapChanges MapTeller::ChangesSince(MapVersion base) const {
  const PartitionTable& partitions = books_->partitions;
  PartitionMapChanges changes{base, partitions.version(), partitions.restore_epoch(), {}, {}};
  for (const PartitionId id : partitions.ChangedSince(base)) {
    changes.partitions.push_back({id, ToldEntry(id)});
  }
  for (ServerEndpoint& server : books_->nodes.Endpoints()) {
    if (partitions.EndpointChangedSince(server.id, base)) {
      changes.servers.push_back(std::move(server));
    }
  }
  return changes;
}

}  // namespace muster
