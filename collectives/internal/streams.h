#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "collectives/frames.h"
#include "net/endpoints.h"
#include "net/offered_rings.h"
#include "net/ring_budget.h"
#include "net/ring_stream.h"

/// What both ends of a connection need for its stream.
namespace muster::collectives::internal {

/// A member that still computes reads nothing, so its window may be closed for as long as it likes.
inline constexpr net::SocketSettings kSocketSettings{.limits_closed_window = false};
/// Bytes that one step of a read or write moves at most.
inline constexpr size_t kStepBytes = size_t{4} << 20;

/// The memory that a process shares with members on its machine. Belongs to the listener's thread,
/// and outlives its streams.
struct RingSharing {
  explicit RingSharing(size_t bytes_max) : budget(bytes_max) {}
  net::RingBudget budget;
  const SystemClock clock;
  /// Of one ring: it holds some chunks, and fits into a processor's cache.
  uint32_t ring_bytes = 1u << 20;
};
/// What a dialer asks for; 0: nothing.
uint32_t WantedRingBytes(const RingSharing& sharing);
/// How long a read looks for bytes in shared memory before it sleeps.
net::RingStream::Spin SpinOf(const RingSharing& sharing);
/// A stream over the rings that this process has made and handed over; `socket` stays open.
std::unique_ptr<net::ByteStream> MadeRings(net::Socket socket, net::RingMemory memory,
                                           std::unique_ptr<net::OfferedRings> offered,
                                           const RingSharing& sharing);
/// A whole frame without a checksum, for what is said before a link exists.
std::string EncodeFrame(FrameKind kind, std::string_view message);

}  // namespace muster::collectives::internal
