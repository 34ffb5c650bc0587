#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace muster::internal {

/// The registered state of a group as one sequence of bytes, and its stripes. The memory is the
/// trainer's. Not thread-safe.
class GroupMemory {
 public:
  GroupMemory() = default;
  explicit GroupMemory(std::vector<std::span<std::byte>> state);

  uint64_t bytes() const { return bytes_; }
  /// CRC-32C of all bytes.
  uint32_t Digest() const;
  /// Where the stripe begins and how many bytes it has: stripes differ by one byte at most.
  /// Requires stripe < stripes.
  std::pair<uint64_t, uint64_t> StripeAt(uint32_t stripe, uint32_t stripes) const;
  /// The pieces of memory that the stripe has, in order, each of up to `piece_bytes` bytes.
  std::vector<std::span<std::byte>> Pieces(uint32_t stripe, uint32_t stripes,
                                           size_t piece_bytes) const;
  /// A copy of the stripe.
  std::vector<std::byte> Copy(uint32_t stripe, uint32_t stripes) const;
  /// Overwrites the stripe. Requires that the sizes are the same.
  void Fill(uint32_t stripe, uint32_t stripes, std::span<const std::byte> bytes) const;
  /// CRC-32C of the stripe as it is now.
  uint32_t StripeDigest(uint32_t stripe, uint32_t stripes) const;

 private:
  std::vector<std::span<std::byte>> state_;
  uint64_t bytes_ = 0;
};

}  // namespace muster::internal
