#include "worker_sdk/session/group_memory.h"

#include <algorithm>
#include <limits>

#include "base/checksum/crc32c.h"

namespace muster::internal {
namespace {

constexpr size_t kWhole = std::numeric_limits<size_t>::max();

uint32_t DigestOf(std::span<const std::span<std::byte>> pieces) {
  uint32_t crc = 0;
  for (const std::span<const std::byte> piece : pieces) crc = Crc32c(piece, crc);
  return crc;
}

}  // namespace

GroupMemory::GroupMemory(std::vector<std::span<std::byte>> state) : state_(std::move(state)) {
  for (const std::span<std::byte> piece : state_) bytes_ += piece.size();
}

uint32_t GroupMemory::Digest() const {
  return DigestOf(state_);
}

std::pair<uint64_t, uint64_t> GroupMemory::StripeAt(uint32_t stripe, uint32_t stripes) const {
  const uint64_t each = bytes_ / stripes, longer = bytes_ % stripes;
  const uint64_t begin = each * stripe + std::min<uint64_t>(stripe, longer);
  return {begin, each + (stripe < longer ? 1 : 0)};
}

std::vector<std::span<std::byte>> GroupMemory::Pieces(uint32_t stripe, uint32_t stripes,
                                                      size_t piece_bytes) const {
  std::vector<std::span<std::byte>> pieces;
  auto [skip, left] = StripeAt(stripe, stripes);
  for (std::span<std::byte> memory : state_) {
    const uint64_t skipped = std::min<uint64_t>(skip, memory.size());
    skip -= skipped;
    memory = memory.subspan(skipped);
    while (left > 0 && !memory.empty()) {
      const uint64_t taken = std::min<uint64_t>({left, memory.size(), piece_bytes});
      pieces.push_back(memory.first(taken));
      memory = memory.subspan(taken);
      left -= taken;
    }
  }
  return pieces;
}

std::vector<std::byte> GroupMemory::Copy(uint32_t stripe, uint32_t stripes) const {
  std::vector<std::byte> copy;
  copy.reserve(StripeAt(stripe, stripes).second);
  for (const std::span<std::byte> piece : Pieces(stripe, stripes, kWhole)) {
    copy.insert(copy.end(), piece.begin(), piece.end());
  }
  return copy;
}

void GroupMemory::Fill(uint32_t stripe, uint32_t stripes, std::span<const std::byte> bytes) const {
  for (const std::span<std::byte> piece : Pieces(stripe, stripes, kWhole)) {
    std::ranges::copy(bytes.first(piece.size()), piece.begin());
    bytes = bytes.subspan(piece.size());
  }
}

uint32_t GroupMemory::StripeDigest(uint32_t stripe, uint32_t stripes) const {
  return DigestOf(Pieces(stripe, stripes, kWhole));
}

}  // namespace muster::internal
