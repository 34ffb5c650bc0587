#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::ps {

/// A list of plain values that grows at its end, in slabs that double in size. Nothing is ever
/// copied. So no push_back has to wait until the values before it are copied, however many there
/// are. New slabs are not initialised, so memory that is not used yet is not touched yet. Not
/// thread-safe.
template <typename T>
class SlabList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);

 public:
  SlabList() = default;
  SlabList(SlabList&& other) noexcept { swap(other); }
  SlabList& operator=(SlabList&& other) noexcept {
    SlabList(std::move(other)).swap(*this);
    return *this;
  }

  void push_back(T value) {
    if (size_ == room_) Grow();
    newest_[size_ - newest_begin_] = value;
    ++size_;
  }
  T operator[](size_t i) const {
    const uint64_t position = (uint64_t{i} >> kFirstSlabBits) + 1;
    const int slab = std::bit_width(position) - 1;
    return slabs_[static_cast<size_t>(slab)][i - Begin(slab)];
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The memory that is reserved.
  size_t bytes() const { return room_ * sizeof(T); }

 private:
  static constexpr int kFirstSlabBits = 4;  // the first slab has 16 values
  static constexpr size_t Begin(int slab) { return ((size_t{1} << slab) - 1) << kFirstSlabBits; }

  void Grow() {
    const size_t count = size_t{1} << (kFirstSlabBits + static_cast<int>(slabs_.size()));
    slabs_.push_back(std::make_unique_for_overwrite<T[]>(count));
    newest_ = slabs_.back().get();
    newest_begin_ = room_;
    room_ += count;
  }
  void swap(SlabList& other) noexcept {
    slabs_.swap(other.slabs_);
    std::swap(newest_, other.newest_);
    std::swap(newest_begin_, other.newest_begin_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  std::vector<std::unique_ptr<T[]>> slabs_;
  T* newest_ = nullptr;  // the last slab, and the position of its first value
  size_t newest_begin_ = 0;
  size_t size_ = 0;
  size_t room_ = 0;
};

}  // namespace muster::ps
