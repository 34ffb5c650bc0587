#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace muster::net {

/// What the two sides of a ring tell each other, in memory that both can write. Each field has one
/// side that sets it; the other side only reads it, and believes nothing of it unchecked.
struct RingControl {
  /// Bytes ever written. Of the writer.
  alignas(64) std::atomic<uint64_t> written;
  /// The writer sleeps until there is room. It sets it, the reader clears it.
  std::atomic<uint32_t> writer_sleeps;
  /// Bytes ever read. Of the reader.
  alignas(64) std::atomic<uint64_t> read;
  /// The reader sleeps until there are bytes. It sets it, the writer clears it.
  std::atomic<uint32_t> reader_sleeps;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

/// One direction's bytes: `data` has `capacity` bytes, a power of two, and is followed by the same
/// memory once more, so that what begins anywhere in it is of one piece.
struct RingSpace {
  RingControl* control = nullptr;
  std::byte* data = nullptr;
  size_t capacity = 0;
};

/// The side that writes. Keeps its own count, so that nothing the peer does to the shared one makes
/// it write where it should not. Not thread-safe. Pure: no system call; who is to be woken is the
/// caller's business.
class RingWriter {
 public:
  explicit RingWriter(RingSpace space) : space_(space) {}

  /// Where the next bytes go: all the room that there is, perhaps none. kDataLoss: the peer's count
  /// is impossible.
  absl::StatusOr<std::span<std::byte>> Room();
  /// The first `bytes` of that room are written. True: the reader sleeps, and is to be woken.
  [[nodiscard]] bool Publish(size_t bytes);
  /// There is no room and the caller is about to sleep. False: there is some by now, do not.
  absl::StatusOr<bool> Sleep();

  uint64_t written() const { return written_; }

 private:
  RingSpace space_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;  // the newest count of the peer that was possible
};

/// The side that reads; as RingWriter.
class RingReader {
 public:
  explicit RingReader(RingSpace space) : space_(space) {}

  /// What has come and was not passed yet, in one piece. The peer may still change it, so what must
  /// not change between a check and its use is to be copied before the check.
  absl::StatusOr<std::span<std::byte>> Bytes();
  /// The first `bytes` of those are no more asked for. They stay as they are until they are given
  /// back.
  void Pass(size_t bytes);
  /// The writer may use again what was passed up to this count of bytes, which grows. True: the
  /// writer sleeps, and is to be woken.
  [[nodiscard]] bool GiveBack(uint64_t until);
  /// There are `have` bytes and the caller is about to sleep until there are more. False: there are
  /// some more by now, do not.
  absl::StatusOr<bool> Sleep(size_t have = 0);
  /// The caller looks for bytes by itself and need not be woken, whatever it said before.
  void StayAwake();

  /// Bytes ever passed, and given back.
  uint64_t passed() const { return passed_; }
  uint64_t given_back() const { return given_back_; }
  size_t capacity() const { return space_.capacity; }

 private:
  RingSpace space_;
  uint64_t passed_ = 0;
  uint64_t given_back_ = 0;
  uint64_t written_ = 0;  // the newest count of the peer that was possible
};

}  // namespace muster::net
