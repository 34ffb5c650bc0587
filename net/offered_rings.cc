#include "net/offered_rings.h"

#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/status.h"

namespace muster::net {
namespace {

absl::StatusOr<RingMemory> MakeMemory(size_t ring_bytes) {
  MUSTER_FAILPOINT_OR_RETURN("rings.before-make");
  return RingMemory::Make(ring_bytes);
}

}  // namespace

OfferedRings::~OfferedRings() {
  budget_->Give(bytes_);
}

size_t OfferedRings::Make(size_t wanted, std::string_view peer) {
  bytes_ = budget_->Take(wanted);
  if (bytes_ == 0) return 0;
  absl::StatusOr<RingMemory> memory = MakeMemory(bytes_);
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

absl::StatusOr<RingMemory> OfferedRings::HandOver(int socket) {
  RingMemory memory = *std::exchange(memory_, std::nullopt);
  MUSTER_FAILPOINT_OR_RETURN("rings.before-hand-over");
  MUSTER_RETURN_IF_ERROR(SendDescriptor(socket, memory.descriptor()));
  MUSTER_FAILPOINT("rings.after-hand-over");
  memory.CloseDescriptor();
  return memory;
}

}  // namespace muster::net
