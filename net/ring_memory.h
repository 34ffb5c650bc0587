#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/descriptors.h"
#include "net/ring.h"

namespace muster::net {

/// Memory that two processes share for one connection: a ring for each direction. Its size cannot
/// change, so no access can fail because the peer truncated it. Movable. The destructor unmaps it;
/// the pages live until both sides are gone.
class RingMemory {
 public:
  /// The bounds of a ring's size, which is a power of two.
  static constexpr size_t kRingBytesMin = 64u << 10;
  static constexpr size_t kRingBytesMax = 64u << 20;

  /// Creates the memory. Its pages take memory when they are first written. kResourceExhausted or
  /// kUnavailable if there is no memory or descriptor for it.
  static absl::StatusOr<RingMemory> Make(size_t ring_bytes);
  /// Maps the memory that a peer created. kInvalidArgument if it does not have the right form.
  static absl::StatusOr<RingMemory> Open(OwnedFd memory, size_t ring_bytes);

  RingMemory(RingMemory&& other) noexcept;
  RingMemory& operator=(RingMemory&& other) noexcept;
  ~RingMemory();

  /// The ring that the creating side writes, and the ring that the opening side writes.
  RingSpace makers() const { return Space(0); }
  RingSpace openers() const { return Space(1); }
  /// The descriptor to hand over; -1 after it is closed, and on the side that opened it.
  int descriptor() const { return memory_.get(); }
  /// Closes the descriptor after it was handed over. The mapping does not need it.
  void CloseDescriptor() { memory_ = OwnedFd(); }

 private:
  RingMemory(OwnedFd memory, size_t ring_bytes);
  RingSpace Space(size_t number) const;
  absl::Status Map();

  OwnedFd memory_;
  size_t ring_bytes_ = 0;
  std::byte* base_ = nullptr;
};

/// Sends `memory` over a connected UNIX socket, with one byte. Never waits: kUnavailable if the
/// socket does not accept it at once.
absl::Status SendDescriptor(int socket, int memory);
/// Takes the byte and the descriptor that SendDescriptor sent. kUnavailable: nothing has arrived
/// yet; kInvalidArgument: something else arrived.
absl::StatusOr<OwnedFd> ReceiveDescriptor(int socket);

}  // namespace muster::net
