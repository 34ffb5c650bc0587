#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace muster::net {

/// The shared state of the two sides of a ring, in memory that both can write. One side sets each
/// field. The other side only reads it, and checks every value.
struct RingControl {
  /// Bytes ever written. Set by the writer.
  alignas(64) std::atomic<uint64_t> written;
  /// The writer sleeps until there is room. The writer sets it, the reader clears it.
  std::atomic<uint32_t> writer_sleeps;
  /// Bytes ever read. Set by the reader.
  alignas(64) std::atomic<uint64_t> read;
  /// The reader sleeps until there are bytes. The reader sets it, the writer clears it.
  std::atomic<uint32_t> reader_sleeps;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

/// The bytes of one direction. `data` has `capacity` bytes, a power of two. The same memory is
/// mapped once more behind it, so bytes are contiguous wherever they begin.
struct RingSpace {
  RingControl* control = nullptr;
  std::byte* data = nullptr;
  size_t capacity = 0;
};

/// The side that writes. It keeps its own count, so a peer that changes the shared count cannot
/// make it write to a wrong place. Not thread-safe. Pure: it makes no system call, and the caller
/// wakes the peer.
class RingWriter {
 public:
  explicit RingWriter(RingSpace space) : space_(space) {}

  /// The free room for the next bytes; it may be empty. kDataLoss if the peer's count is
  /// impossible.
  absl::StatusOr<std::span<std::byte>> Room();
  /// The first `bytes` of that room were written. If it returns true, the reader sleeps, so wake
  /// it.
  [[nodiscard]] bool Publish(size_t bytes);
  /// There is no room, and the caller is about to sleep. If it returns false, there is room now, so
  /// do not sleep.
  absl::StatusOr<bool> Sleep();

  uint64_t written() const { return written_; }

 private:
  RingSpace space_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;  // the newest valid count of the peer
};

/// The side that reads. It works like RingWriter.
class RingReader {
 public:
  explicit RingReader(RingSpace space) : space_(space) {}

  /// The bytes that have arrived and were not passed yet, in one piece. The peer may still change
  /// them. So if something must not change between a check and its use, copy it before the check.
  absl::StatusOr<std::span<std::byte>> Bytes();
  /// Passes over the first `bytes` of them. They stay unchanged until they are given back.
  void Pass(size_t bytes);
  /// Gives back the bytes up to this count, which only grows, so the writer may use their room
  /// again. If it returns true, the writer sleeps, so wake it.
  [[nodiscard]] bool GiveBack(uint64_t until);
  /// There are `have` bytes, and the caller is about to sleep until there are more. If it returns
  /// false, there are more now, so do not sleep.
  absl::StatusOr<bool> Sleep(size_t have = 0);
  /// The caller polls for bytes, so it need not be woken, even if it said so before.
  void StayAwake();

  /// The numbers of bytes ever passed over, and ever given back.
  uint64_t passed() const { return passed_; }
  uint64_t given_back() const { return given_back_; }
  size_t capacity() const { return space_.capacity; }

 private:
  RingSpace space_;
  uint64_t passed_ = 0;
  uint64_t given_back_ = 0;
  uint64_t written_ = 0;  // the newest valid count of the peer
};

}  // namespace muster::net
