#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "sharding/types.h"

namespace muster {

/// What a worker process is doing, in a small file that it maps shared and that outlives it: the
/// supervisor reads it after the process died, and can charge a crash to the shard being computed,
/// even when the process died before its next heartbeat. Written by one process (any thread of it:
/// the fields are atomic), read by another on the same machine, in its byte order.
struct SlotFile {
  static constexpr uint64_t kMagic = 0x4d5553544552534cULL;  // "MUSTERSL"
  std::atomic<uint64_t> magic;
  /// Of the worker process, as in WorkerExchangeRequest.
  std::atomic<uint64_t> incarnation;
  /// The token of the shard whose loop the trainer is in; 0 = none.
  std::atomic<uint64_t> computing_token;
  /// Minibatches of that shard handed to the trainer in this run.
  std::atomic<uint32_t> minibatches_started;
  /// 1 once the session saw END or DRAIN, or the trainer called Leave: an exit 0 is then the right
  /// one.
  std::atomic<uint32_t> ended;
};
static_assert(sizeof(SlotFile) == 32 && std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

/// A slot file's contents as a value.
struct SlotRecord {
  uint64_t incarnation = 0;
  LeaseToken computing_token{};  // zero: none
  uint32_t minibatches_started = 0;
  bool ended = false;
  friend bool operator==(const SlotRecord&, const SlotRecord&) = default;
};

/// Starts a slot for a process: everything zero but the incarnation. `slot` points at
/// sizeof(SlotFile) mapped bytes, which a former process may have written.
inline void BeginSlot(SlotFile* slot, uint64_t incarnation) {
  slot->magic.store(0);
  slot->computing_token.store(0);
  slot->minibatches_started.store(0);
  slot->ended.store(0);
  slot->incarnation.store(incarnation);
  slot->magic.store(SlotFile::kMagic);
}

/// The trainer enters the loop of a shard. The count goes first: it belongs to the token after it.
inline void EnterShard(SlotFile* slot, LeaseToken token) {
  slot->minibatches_started.store(0);
  slot->computing_token.store(token.value());
}

/// The trainer gets its next minibatch.
inline void StartMinibatch(SlotFile* slot) {
  slot->minibatches_started.fetch_add(1);
}

/// The trainer has left the shard's loop.
inline void LeaveShard(SlotFile* slot) {
  slot->computing_token.store(0);
}

/// The session saw END or DRAIN.
inline void EndSlot(SlotFile* slot) {
  slot->ended.store(1);
}

/// Decodes the bytes of a slot file; nothing when they are too short or no process has begun it.
inline std::optional<SlotRecord> ParseSlot(std::string_view bytes) {
  if (bytes.size() < sizeof(SlotFile)) return std::nullopt;
  uint64_t words[3];
  uint32_t halves[2];
  std::memcpy(words, bytes.data(), sizeof(words));
  std::memcpy(halves, bytes.data() + sizeof(words), sizeof(halves));
  if (words[0] != SlotFile::kMagic) return std::nullopt;
  return SlotRecord{.incarnation = words[1],
                    .computing_token = LeaseToken::FromValue(words[2]),
                    .minibatches_started = halves[0],
                    .ended = halves[1] != 0};
}

}  // namespace muster
