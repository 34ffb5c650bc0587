#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/descriptors.h"
#include "net/ring.h"

namespace muster::net {

/// Memory that two processes share for one connection: a ring for each direction. It cannot be made
/// larger or smaller once it is there, so no access to it can fail because the peer cut it off.
/// Movable. Unmapped with its end; pages live until both sides are gone.
class RingMemory {
 public:
  /// A ring has a power of two of bytes, from this many to that many.
  static constexpr size_t kRingBytesMin = 64u << 10;
  static constexpr size_t kRingBytesMax = 64u << 20;

  /// Makes it; pages take memory when they are first written. kResourceExhausted, kUnavailable:
  /// there is no memory or descriptor for it.
  static absl::StatusOr<RingMemory> Make(size_t ring_bytes);
  /// Takes what a peer has made, if it is what it should be: kInvalidArgument.
  static absl::StatusOr<RingMemory> Open(OwnedFd memory, size_t ring_bytes);

  RingMemory(RingMemory&& other) noexcept;
  RingMemory& operator=(RingMemory&& other) noexcept;
  ~RingMemory();

  /// Written by who made it / by who opened it.
  RingSpace makers() const { return Space(0); }
  RingSpace openers() const { return Space(1); }
  /// Of who made it, to be handed over; -1 once it is closed, and for who opened it.
  int descriptor() const { return memory_.get(); }
  /// It has been handed over. The mapping needs no descriptor.
  void CloseDescriptor() { memory_ = OwnedFd(); }

 private:
  RingMemory(OwnedFd memory, size_t ring_bytes);
  RingSpace Space(size_t number) const;
  absl::Status Map();

  OwnedFd memory_;
  size_t ring_bytes_ = 0;
  std::byte* base_ = nullptr;
};

/// Sends `memory` over a connected UNIX socket, with one byte. Never waits: kUnavailable when the
/// socket does not take it at once.
absl::Status SendDescriptor(int socket, int memory);
/// Takes the byte and the descriptor that SendDescriptor sent. kUnavailable: nothing has come yet;
/// kInvalidArgument: something else came.
absl::StatusOr<OwnedFd> ReceiveDescriptor(int socket);

}  // namespace muster::net
