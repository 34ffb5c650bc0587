#include "worker_sdk/member/group_memory.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checksum/crc32c.h"
#include "base/mapped_memory.h"
#include "proto/wire/checksum_stream.h"

namespace muster::internal {
namespace {

constexpr size_t kWhole = std::numeric_limits<size_t>::max();
/// Is still in the processor's cache when it is copied after its checksum.
constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr size_t kPageBytes = 4096;

/// As memcpy, but what is written does not go through the processor's cache. Nobody reads a copy
/// soon, and to fetch the memory that it overwrites is a third of the work.
void CopyPastCache(std::byte* to, const std::byte* from, size_t bytes) {
#ifdef __SSE2__
  constexpr size_t kLine = 64;
  const size_t before = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % kLine);
  std::memcpy(to, from, before);
  to += before, from += before, bytes -= before;
  for (; bytes >= kLine; to += kLine, from += kLine, bytes -= kLine) {
    for (size_t i = 0; i < kLine; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
  // Other threads may read it from here on.
  _mm_sfence();
#endif
  std::memcpy(to, from, bytes);
}

uint32_t DigestOf(std::span<const std::span<std::byte>> pieces) {
  uint32_t crc = 0;
  for (const std::span<const std::byte> piece : pieces) crc = Crc32c(piece, crc);
  return crc;
}

}  // namespace

StripeCopy& StripeCopy::operator=(StripeCopy&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  std::swap(room_, other.room_);
  std::swap(given_, other.given_);
  std::swap(crc_, other.crc_);
  return *this;
}

StripeCopy::~StripeCopy() {
  if (begin_ != nullptr) UnmapMemory(begin_, room_);
}

void StripeCopy::Resize(size_t size) {
  if (size > room_) {
    if (begin_ != nullptr) UnmapMemory(std::exchange(begin_, nullptr), room_);
    room_ = (size + kPageBytes - 1) / kPageBytes * kPageBytes;
    begin_ = MapMemory(room_);
    given_ = 0;
  }
  size_ = size;
}

bool StripeCopy::Prepare(size_t size, size_t most) {
  Resize(size);
  const size_t end = std::min(size, given_ + most);
  for (; given_ < end; given_ += kPageBytes) begin_[given_] = std::byte(1);
  return given_ >= size;
}

void SpareCopy::Put(StripeCopy copy) {
  MutexLock lock(&mutex_);
  if (copy.room_ > copy_.room_) std::swap(copy_, copy);
}

StripeCopy SpareCopy::Take() {
  MutexLock lock(&mutex_);
  return std::exchange(copy_, StripeCopy());
}

GroupMemory::GroupMemory(std::vector<std::span<std::byte>> state) : state_(std::move(state)) {
  for (const std::span<std::byte> piece : state_) bytes_ += piece.size();
}

uint32_t GroupMemory::Digest() const {
  return DigestOf(state_);
}

uint64_t GroupMemory::Hash() const {
  wire::ChecksumStream hash;
  for (const std::span<const std::byte> piece : state_) {
    if (!piece.empty()) hash.Add(piece);
  }
  return hash.value();
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

void GroupMemory::Copy(uint32_t stripe, uint32_t stripes, StripeCopy* copy,
                       std::atomic<uint64_t>* copied) const {
  copy->Resize(StripeAt(stripe, stripes).second);
  copy->crc_ = 0;
  std::byte* to = copy->begin_;
  for (const std::span<std::byte> piece : Pieces(stripe, stripes, kBlockBytes)) {
    // The checksum comes first, because it brings the piece into the cache.
    copy->crc_ = Crc32c(piece, copy->crc_);
    CopyPastCache(to, piece.data(), piece.size());
    to += piece.size();
    copied->fetch_add(piece.size(), std::memory_order_relaxed);
  }
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
