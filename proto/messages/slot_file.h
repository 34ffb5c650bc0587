#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/words/types.h"

namespace muster {

/// What a worker process is doing, in a small file that it maps shared and that outlives it: the
/// supervisor reads it after the process died, and can charge a crash to the shard being computed,
/// even when the process died before its next heartbeat. Written by one process (any thread of it:
/// the fields are atomic), read by another on the same machine, in its byte order.
struct SlotFile {
  static constexpr uint64_t kMagic = 0x4d5553544552534dULL;  // "MUSTERSM"
  static constexpr size_t kLoopsMax = 64;
  /// One loop of the trainer.
  struct Loop {
    /// The token of the shard that it is in; 0 = none, and the place is free.
    std::atomic<uint64_t> token;
    /// Minibatches of that shard handed to the trainer in this run.
    std::atomic<uint32_t> minibatches_started;
    uint32_t unused;
  };
  std::atomic<uint64_t> magic;
  /// Of the worker process, as in WorkerExchangeRequest.
  std::atomic<uint64_t> incarnation;
  Loop loops[kLoopsMax];
  /// 1 after the session saw END or DRAIN, or the trainer called Leave: then exit code 0 is
  /// correct.
  std::atomic<uint32_t> ended;
  /// 1 after a loop found no place.
  std::atomic<uint32_t> crowded;
};
static_assert(sizeof(SlotFile) == 24 + 16 * SlotFile::kLoopsMax &&
              std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

/// A slot file's contents as a value.
struct SlotRecord {
  struct Computing {
    LeaseToken token;
    uint32_t minibatches_started = 0;
    friend bool operator==(const Computing&, const Computing&) = default;
  };
  uint64_t incarnation = 0;
  /// The shards that loops were in.
  std::vector<Computing> computing;
  bool ended = false;
  /// There were more loops than places: `computing` may lack some.
  bool crowded = false;
  friend bool operator==(const SlotRecord&, const SlotRecord&) = default;

  /// The shard that a crash is charged to: the one being computed, if it was the only one. Which of
  /// several loops crashed is not known, and a crash is charged to no shard that did not cause it.
  std::optional<Computing> Alone() const {
    if (computing.size() != 1 || crowded) return std::nullopt;
    return computing.front();
  }
};

/// Starts a slot for a process: everything zero but the incarnation. `slot` points at
/// sizeof(SlotFile) mapped bytes, which a former process may have written.
inline void BeginSlot(SlotFile* slot, uint64_t incarnation) {
  slot->magic.store(0);
  for (SlotFile::Loop& loop : slot->loops) {
    loop.token.store(0);
    loop.minibatches_started.store(0);
  }
  slot->ended.store(0);
  slot->crowded.store(0);
  slot->incarnation.store(incarnation);
  slot->magic.store(SlotFile::kMagic);
}

/// The place of the loop that is in this shard; null: it has none. Of token 0: a free place.
inline SlotFile::Loop* FindLoop(SlotFile* slot, LeaseToken token) {
  for (SlotFile::Loop& loop : slot->loops) {
    if (loop.token.load() == token.value()) return &loop;
  }
  return nullptr;
}

/// A loop of the trainer enters a shard.
inline void EnterShard(SlotFile* slot, LeaseToken token) {
  while (SlotFile::Loop* loop = FindLoop(slot, LeaseToken())) {
    uint64_t none = 0;
    if (!loop->token.compare_exchange_strong(none, token.value())) continue;
    loop->minibatches_started.store(0);
    return;
  }
  slot->crowded.store(1);
}

/// The loop in the shard gets its next minibatch.
inline void StartMinibatch(SlotFile* slot, LeaseToken token) {
  if (SlotFile::Loop* loop = FindLoop(slot, token)) loop->minibatches_started.fetch_add(1);
}

/// The loop has left the shard. Clears the count first, because it belongs to the token.
inline void LeaveShard(SlotFile* slot, LeaseToken token) {
  SlotFile::Loop* loop = FindLoop(slot, token);
  if (loop == nullptr) return;
  loop->minibatches_started.store(0);
  loop->token.store(0);
}

/// The session saw END or DRAIN.
inline void EndSlot(SlotFile* slot) {
  slot->ended.store(1);
}

/// Decodes the bytes of a slot file; none if they are too short, or if no process has begun it.
inline std::optional<SlotRecord> ParseSlot(std::string_view bytes) {
  if (bytes.size() < sizeof(SlotFile)) return std::nullopt;
  const auto word = [&](size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  const auto half = [&](size_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  if (word(offsetof(SlotFile, magic)) != SlotFile::kMagic) return std::nullopt;
  SlotRecord record{.incarnation = word(offsetof(SlotFile, incarnation)),
                    .ended = half(offsetof(SlotFile, ended)) != 0,
                    .crowded = half(offsetof(SlotFile, crowded)) != 0};
  for (size_t i = 0; i < SlotFile::kLoopsMax; ++i) {
    const size_t at = offsetof(SlotFile, loops) + i * sizeof(SlotFile::Loop);
    const LeaseToken token = LeaseToken::FromValue(word(at));
    if (token == LeaseToken()) continue;
    record.computing.push_back({token, half(at + offsetof(SlotFile::Loop, minibatches_started))});
  }
  return record;
}

}  // namespace muster
