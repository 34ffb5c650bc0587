#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace muster::wire {

/// ChecksumOf (proto/wire/frame.h) over bytes that come piece by piece. Not thread-safe.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();

  /// Begins anew.
  void Reset();
  void Add(std::span<const std::byte> piece);
  /// Of all that was added.
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::wire
