#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "worker_sdk/core/row_memory.h"
#include "worker_sdk/core/small_blocks.h"

namespace muster::sdk {

/// For containers and shared pointers that live for one minibatch: they reuse the memory of earlier
/// ones. Thread-safe.
template <typename T>
class PoolAllocator {
 public:
  using value_type = T;
  PoolAllocator() = default;
  template <typename Other>
  PoolAllocator(const PoolAllocator<Other>& /*other*/) {}  // NOLINT: containers rebind

  T* allocate(size_t count) {
    static_assert(alignof(T) <= 64);
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    const size_t bytes = count * sizeof(T);
    return static_cast<T*>(IsSmall(bytes) ? small_blocks::Take(bytes) : row_memory::Take(bytes));
  }
  void deallocate(T* block, size_t count) noexcept {
    const size_t bytes = count * sizeof(T);
    if (IsSmall(bytes)) {
      small_blocks::Give(block, bytes);
    } else {
      row_memory::Give(block);
    }
  }
  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }

 private:
  static bool IsSmall(size_t bytes) { return bytes <= small_blocks::kBytesMax; }
};

template <typename T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

/// As std::make_shared.
template <typename T, typename... Args>
std::shared_ptr<T> MakePooled(Args&&... args) {
  return std::allocate_shared<T>(PoolAllocator<T>(), std::forward<Args>(args)...);
}

}  // namespace muster::sdk
