#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace muster::wire {

/// ChecksumOf (proto/wire/frame.h) over bytes that arrive in pieces. Not thread-safe.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();

  /// Starts again.
  void Reset();
  void Add(std::span<const std::byte> piece);
  /// The checksum of all added bytes.
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::wire
