#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "base/words/types.h"
#include "proto/messages/control.h"

namespace muster::ps {

struct WindowEntry {
  ShardId shard;
  std::vector<uint64_t> minibatches;  // bit set, 64 per word
  friend bool operator==(const WindowEntry&, const WindowEntry&) = default;
};

/// Knows which minibatches of which shards are in a partition's rows, until a shard is forgotten
/// (docs/protocol.md sections 1 and 3). Not thread-safe; a value.
class Window {
 public:
  /// A minibatch index from here on is refused, because an index costs memory up to its size.
  static constexpr uint32_t kMinibatchesMax = 1u << 20;

  bool Contains(const ShardId& shard, MinibatchIndex minibatch) const;
  /// Prefetches the data that Contains and Add of this shard will need.
  void Prefetch(const ShardId& shard) const { shards_.prefetch(shard); }
  /// Requires minibatch < kMinibatchesMax, and that it is not in the window.
  void Add(const ShardId& shard, MinibatchIndex minibatch);
  /// Drops the entries of every shard in `state`.
  void Forget(const ForgetState& state);
  /// Replaces the entry of a shard.
  void Set(WindowEntry entry);

  /// All entries, sorted by shard.
  std::vector<WindowEntry> Entries() const;
  size_t shards() const { return shards_.size(); }

 private:
  /// Most shards have few minibatches, so their bits need no separate memory.
  using Bits = absl::InlinedVector<uint64_t, 2>;
  /// Null: no minibatch of the shard.
  const Bits* Find(const ShardId& shard) const;

  /// The entry that was used last. The minibatches of a shard come one after the other, and a push
  /// looks for its shard twice. A copy of a window begins without it, and whatever may move entries
  /// must forget it.
  struct Newest {
    ShardId shard;
    const Bits* bits = nullptr;
    Newest() = default;
    Newest(const Newest& /*other*/) {}            // NOLINT: see above
    Newest& operator=(const Newest& /*other*/) {  // NOLINT: see above
      bits = nullptr;
      return *this;
    }
  };

  absl::flat_hash_map<ShardId, Bits> shards_;
  mutable Newest newest_;
};

}  // namespace muster::ps
