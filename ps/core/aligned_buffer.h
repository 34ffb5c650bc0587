#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::ps {

/// A growing array of bytes, aligned for vector instructions; new bytes are not initialised. It
/// receives frames and holds replies, and is reused between frames. It can borrow its memory for a
/// while. Movable, not copyable, not thread-safe.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  /// Makes an empty buffer that uses `memory` as long as it is large enough. `memory` must be
  /// aligned for floats.
  static AlignedBuffer Lent(std::span<std::byte> memory);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  /// Makes size() == bytes. The contents are unspecified after growth. Returns false, and leaves
  /// the buffer empty, if there is not enough memory.
  [[nodiscard]] bool Resize(size_t bytes);
  /// Copies the contents of borrowed memory into memory of its own. Returns false, and leaves the
  /// buffer empty, if there is not enough memory.
  [[nodiscard]] bool Own();
  /// Frees about `bytes` of the memory, because freeing a large buffer at once takes long. Returns
  /// true when nothing is left. After the first call, only this function may be called.
  bool ReleaseSome(size_t bytes);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool lent() const { return lent_; }
  /// The bytes as numbers. size() must be a multiple of the size of a number.
  std::span<float> floats();
  std::span<uint64_t> words();

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool lent_ = false;
};

}  // namespace muster::ps
