#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::ps {

/// A growing array of bytes, aligned for vector instructions, whose new bytes are not initialised:
/// what frames are received into and replies are built in. Reused between frames. Its memory can be
/// lent by somebody else for a while. Movable, not copyable, not thread-safe.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  /// An empty buffer that uses `memory` as long as it is large enough; it is aligned for floats.
  static AlignedBuffer Lent(std::span<std::byte> memory);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  /// Makes size() == bytes. The contents are unspecified after growth. Returns false, and leaves
  /// the buffer empty, when the memory is not to be had.
  [[nodiscard]] bool Resize(size_t bytes);
  /// Copies what is in lent memory into its own. False: as Resize.
  [[nodiscard]] bool Own();
  /// Gives back about `bytes` of the memory, for to give back all of a large buffer takes long.
  /// True: nothing is left. The buffer is good for nothing else from the first call on.
  bool ReleaseSome(size_t bytes);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool lent() const { return lent_; }
  /// The bytes as numbers; size() must be a multiple.
  std::span<float> floats();
  std::span<uint64_t> words();

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool lent_ = false;
};

}  // namespace muster::ps
