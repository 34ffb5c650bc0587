#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "ps/core/aligned_buffer.h"

namespace muster::ps {

/// Keeps the buffers of written replies for the next replies. A new buffer costs a page fault for
/// every 4 KiB, which takes longer than copying the rows into it. All connections of a lane share
/// the buffers, so that a worker with several replies in flight finds one for each. Only the lane's
/// thread uses it.
class SpareBuffers {
 public:
  explicit SpareBuffers(size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Returns a kept buffer, or an empty one.
  AlignedBuffer Take() {
    if (kept_.empty()) return {};
    AlignedBuffer buffer = std::move(kept_.back());
    kept_.pop_back();
    bytes_ -= buffer.capacity();
    return buffer;
  }

  /// Keeps the buffer, or returns it if enough are kept.
  AlignedBuffer Keep(AlignedBuffer buffer) {
    if (buffer.capacity() == 0 || bytes_ + buffer.capacity() > bytes_max_) return buffer;
    bytes_ += buffer.capacity();
    kept_.push_back(std::move(buffer));
    return {};
  }

  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_max_;
  std::vector<AlignedBuffer> kept_;
  size_t bytes_ = 0;
};

}  // namespace muster::ps
