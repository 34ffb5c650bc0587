#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace muster::internal {

/// A copy of a stripe, in memory of its own. Not thread-safe.
class StripeCopy {
 public:
  StripeCopy() = default;
  StripeCopy(StripeCopy&& other) noexcept { *this = std::move(other); }
  StripeCopy& operator=(StripeCopy&& other) noexcept;
  ~StripeCopy();

  std::span<const std::byte> bytes() const { return {begin_, size_}; }
  /// CRC-32C of the bytes.
  uint32_t crc() const { return crc_; }
  /// Makes room for `size` bytes, and has the system give up to `most` more of them. True: it has
  /// given all. The contents are lost.
  bool Prepare(size_t size, size_t most);

 private:
  friend class GroupMemory;
  friend class SpareCopy;
  /// The contents are lost. Memory that is large enough stays.
  void Resize(size_t size);

  std::byte* begin_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
  size_t given_ = 0;  // by Prepare
  uint32_t crc_ = 0;
};

/// Memory of a copy that nobody reads any more, for the next one: new memory costs more time than
/// the copy. Thread-safe.
class SpareCopy {
 public:
  /// The larger one stays.
  void Put(StripeCopy copy);
  /// Empty if there is none.
  StripeCopy Take();

 private:
  Mutex mutex_;
  StripeCopy copy_ MUSTER_GUARDED_BY(mutex_);
};

/// The registered state of a group as one sequence of bytes, and its stripes. The memory is the
/// trainer's. Not thread-safe.
class GroupMemory {
 public:
  GroupMemory() = default;
  explicit GroupMemory(std::vector<std::span<std::byte>> state);

  uint64_t bytes() const { return bytes_; }
  /// CRC-32C of all bytes.
  uint32_t Digest() const;
  /// XXH3 of all bytes: StateDigest::value.
  uint64_t Hash() const;
  /// Where the stripe begins and how many bytes it has: stripes differ by one byte at most.
  /// Requires stripe < stripes.
  std::pair<uint64_t, uint64_t> StripeAt(uint32_t stripe, uint32_t stripes) const;
  /// The pieces of memory that the stripe has, in order, each of up to `piece_bytes` bytes.
  std::vector<std::span<std::byte>> Pieces(uint32_t stripe, uint32_t stripes,
                                           size_t piece_bytes) const;
  /// Copies the stripe into `copy`, whose memory is used if it is large enough. Meanwhile, `copied`
  /// grows by its bytes.
  void Copy(uint32_t stripe, uint32_t stripes, StripeCopy* copy,
            std::atomic<uint64_t>* copied) const;
  /// Overwrites the stripe. Requires that the sizes are the same.
  void Fill(uint32_t stripe, uint32_t stripes, std::span<const std::byte> bytes) const;
  /// CRC-32C of the stripe as it is now.
  uint32_t StripeDigest(uint32_t stripe, uint32_t stripes) const;

 private:
  std::vector<std::span<std::byte>> state_;
  uint64_t bytes_ = 0;
};

}  // namespace muster::internal
