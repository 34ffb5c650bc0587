#include "ps/net/internal/offered_rings.h"

#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/status.h"

namespace muster::ps {
namespace {

absl::StatusOr<net::RingMemory> MakeMemory(size_t ring_bytes) {
  MUSTER_FAILPOINT_OR_RETURN("rings.before-make");
  return net::RingMemory::Make(ring_bytes);
}

}  // namespace

OfferedRings::~OfferedRings() {
  budget_->Give(bytes_);
}

size_t OfferedRings::Make(size_t wanted, std::string_view peer) {
  bytes_ = budget_->Take(wanted);
  if (bytes_ == 0) return 0;
  absl::StatusOr<net::RingMemory> memory = MakeMemory(bytes_);
  if (!memory.ok()) {
    Log(LogLevel::kWarning,
        "there is no shared memory for {}, so it continues to use its socket: {}", peer,
        Message(memory.status()));
    budget_->Give(std::exchange(bytes_, 0));
    return 0;
  }
  memory_ = *std::move(memory);
  return bytes_;
}

absl::StatusOr<net::RingMemory> OfferedRings::HandOver(int socket) {
  net::RingMemory memory = *std::exchange(memory_, std::nullopt);
  MUSTER_FAILPOINT_OR_RETURN("rings.before-hand-over");
  MUSTER_RETURN_IF_ERROR(net::SendDescriptor(socket, memory.descriptor()));
  MUSTER_FAILPOINT("rings.after-hand-over");
  memory.CloseDescriptor();
  return memory;
}

}  // namespace muster::ps
