#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "master/core/books.h"
#include "proto/messages/control.h"

namespace muster {

/// What an answer says of the partition map: the whole of it, or what has changed since some
/// version. One value for all workers who are told the same. Immutable; thread-safe.
class MapNews {
 public:
  explicit MapNews(PartitionMap whole) { as_reply_.map = std::move(whole); }
  explicit MapNews(PartitionMapChanges changes) { as_reply_.map_changes = std::move(changes); }

  /// An answer with only the map set; its bytes are appended to another answer's.
  const WorkerExchangeReply& as_reply() const { return as_reply_; }
  /// Its bytes, to be appended to those of an answer without a map. The first caller encodes, so
  /// that it is done once, and by no step.
  const std::string& Encoded() const;

 private:
  WorkerExchangeReply as_reply_;
  mutable std::once_flag once_;
  mutable std::string encoded_;
};

/// Tells workers the partition map. Owns the news of the present version, one for every version
/// that workers come from. Keeps of docs/protocol.md, section 5, which changes a worker is told.
/// Pure; not thread-safe.
class MapTeller {
 public:
  /// It outlives this.
  explicit MapTeller(Books* books) : books_(books) {}

  /// What a worker is told whose map is of version `have`, and who wants the changes since `base`
  /// (0: the whole map). Null: its map is current.
  std::shared_ptr<const MapNews> For(MapVersion have, MapVersion base);

 private:
  PartitionEntry ToldEntry(PartitionId id) const;
  PartitionMap Whole() const;
  PartitionMapChanges ChangesSince(MapVersion base) const;

  Books* const books_;
  /// Of this version are the news.
  MapVersion version_;
  /// By the base; 0: the whole map.
  std::map<MapVersion, std::shared_ptr<const MapNews>> news_;
};

}  // namespace muster
