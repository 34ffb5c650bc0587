#include "ps/core/aligned_buffer.h"

#include <sys/mman.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace muster::ps {
namespace {

constexpr size_t kStep = 1u << 20;
/// The size of the smallest page, or a multiple of it.
constexpr size_t kPage = 64u << 10;

/// Capacities are powers of two up to one mebibyte, and whole mebibytes above. So there are few
/// reallocations, and little memory is wasted.
size_t CapacityFor(size_t bytes) {
  if (bytes <= kStep) return std::bit_ceil(bytes < 256 ? size_t{256} : bytes);
  return (bytes + kStep - 1) / kStep * kStep;
}

void Free(std::byte* data) {
  ::operator delete[](data, std::align_val_t{AlignedBuffer::kAlignment});
}

}  // namespace

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept {
  *this = std::move(other);
}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  std::swap(lent_, other.lent_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (!lent_) Free(data_);
}

AlignedBuffer AlignedBuffer::Lent(std::span<std::byte> memory) {
  MUSTER_CHECK(reinterpret_cast<uintptr_t>(memory.data()) % alignof(float) == 0);
  AlignedBuffer buffer;
  buffer.data_ = memory.data();
  buffer.capacity_ = memory.size();
  buffer.lent_ = true;
  return buffer;
}

bool AlignedBuffer::Resize(size_t bytes) {
  if (bytes > capacity_) {
    if (!std::exchange(lent_, false)) Free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
    const size_t capacity = CapacityFor(bytes);
    data_ = static_cast<std::byte*>(
        ::operator new[](capacity, std::align_val_t{kAlignment}, std::nothrow));
    if (data_ == nullptr) return false;
    capacity_ = capacity;
  }
  size_ = bytes;
  return true;
}

bool AlignedBuffer::Own() {
  if (!lent_) return true;
  AlignedBuffer own;
  const bool there = own.Resize(size_);
  if (there && size_ > 0) std::memcpy(own.data_, data_, size_);
  *this = std::move(own);
  return there;
}

bool AlignedBuffer::ReleaseSome(size_t bytes) {
  MUSTER_CHECK(!lent_);
  size_ = 0;
  if (capacity_ > bytes) {
    // Gives the pages back to the system. After that, operator delete needs only the address.
    const auto begin = reinterpret_cast<uintptr_t>(data_);
    const uintptr_t from = (begin + (capacity_ - bytes) + kPage - 1) / kPage * kPage;
    const uintptr_t to = (begin + capacity_) / kPage * kPage;
    if (to > from) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    capacity_ -= bytes;
    return false;
  }
  Free(std::exchange(data_, nullptr));
  capacity_ = 0;
  return true;
}

std::span<float> AlignedBuffer::floats() {
  MUSTER_CHECK(size_ % sizeof(float) == 0);
  return {reinterpret_cast<float*>(data_), size_ / sizeof(float)};
}

std::span<uint64_t> AlignedBuffer::words() {
  MUSTER_CHECK(size_ % sizeof(uint64_t) == 0);
  return {reinterpret_cast<uint64_t*>(data_), size_ / sizeof(uint64_t)};
}

}  // namespace muster::ps
