#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "master/core/books.h"
#include "proto/messages/control.h"

namespace muster {

/// What an answer says about the partition map: the whole map, or its changes since a version. All
/// workers with the same answer share one value. Immutable; thread-safe.
class MapNews {
 public:
  explicit MapNews(PartitionMap whole) { as_reply_.map = std::move(whole); }
  explicit MapNews(PartitionMapChanges changes) { as_reply_.map_changes = std::move(changes); }

  /// An answer with only the map set; its bytes are appended to another answer's.
  const WorkerExchangeReply& as_reply() const { return as_reply_; }
  /// Its bytes, to append to an answer without a map. The first caller encodes them, so that this
  /// happens once, and outside the core's steps.
  const std::string& Encoded() const;

 private:
  WorkerExchangeReply as_reply_;
  mutable std::once_flag once_;
  mutable std::string encoded_;
};

/// Tells workers the partition map. Owns the news of the current version, one for each version that
/// workers have. Enforces docs/protocol.md, section 5: which changes a worker is told. Pure; not
/// thread-safe.
class MapTeller {
 public:
  /// Both outlive it.
  MapTeller(const Books* books, PartitionTable* partitions)
      : books_(books), partitions_(partitions) {}

  /// The news for a worker whose map has version `have`, and which wants the changes since `base`
  /// (0: the whole map). Null if its map is current.
  std::shared_ptr<const MapNews> For(MapVersion have, MapVersion base);

 private:
  PartitionEntry ToldEntry(PartitionId id) const;
  PartitionMap Whole() const;
  PartitionMapChanges ChangesSince(MapVersion base) const;

  const Books* const books_;
  PartitionTable* const partitions_;
  /// The version of the news.
  MapVersion version_;
  /// By the base; 0: the whole map.
  std::map<MapVersion, std::shared_ptr<const MapNews>> news_;
};

}  // namespace muster
