#include "ps/net/aligned_buffer.h"

#include <bit>
#include <new>
#include <utility>

#include "base/check.h"

namespace muster::ps {
namespace {

constexpr size_t kStep = 1u << 20;

/// Powers of two up to a mebibyte, then whole mebibytes: few reallocations, little waste.
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
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  Free(data_);
}

bool AlignedBuffer::Resize(size_t bytes) {
  if (bytes > capacity_) {
    Free(std::exchange(data_, nullptr));
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

void AlignedBuffer::ReleaseIfLarger(size_t bytes) {
  if (capacity_ <= bytes) return;
  Free(std::exchange(data_, nullptr));
  size_ = capacity_ = 0;
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
