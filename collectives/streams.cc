#include "collectives/internal/streams.h"

#include <array>
#include <chrono>
#include <utility>

namespace muster::collectives::internal {
namespace {

// How long a read looks for bytes in shared memory before it sleeps; less if waits are long. Where
// members have more threads than there are processors, a longer look keeps others from working.
constexpr std::chrono::microseconds kSpinMax{10};

/// Its memory counts for as long as it lives.
class MadeRingStream : public net::RingStream {
 public:
  MadeRingStream(net::Socket socket, net::RingMemory memory,
                 std::unique_ptr<net::OfferedRings> offered, const RingSharing& sharing)
      : RingStream(std::move(socket), std::move(memory), Side::kMadeIt, SpinOf(sharing)),
        offered_(std::move(offered)) {}

 private:
  const std::unique_ptr<net::OfferedRings> offered_;
};

}  // namespace

net::RingStream::Spin SpinOf(const RingSharing& sharing) {
  return {.max = kSpinMax, .clock = &sharing.clock};
}

uint32_t WantedRingBytes(const RingSharing& sharing) {
  return sharing.budget.bytes_max() == 0 ? 0 : sharing.ring_bytes;
}

std::unique_ptr<net::ByteStream> MadeRings(net::Socket socket, net::RingMemory memory,
                                           std::unique_ptr<net::OfferedRings> offered,
                                           const RingSharing& sharing) {
  return std::make_unique<MadeRingStream>(std::move(socket), std::move(memory), std::move(offered),
                                          sharing);
}

std::string EncodeFrame(FrameKind kind, std::string_view message) {
  std::array<std::byte, kFrameHeaderBytes> header;
  EncodeFrameHeader({.kind = kind, .payload_bytes = message.size()}, header);
  std::string frame(reinterpret_cast<const char*>(header.data()), header.size());
  return frame += message;
}

}  // namespace muster::collectives::internal
