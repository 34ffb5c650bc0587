#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/words/types.h"
#include "collectives/add_elements.h"
#include "collectives/chunk_plan.h"
#include "collectives/frames.h"

namespace muster::collectives::internal {

/// One bucket that is being summed, at one member. Pure: the caller carries the chunks. The
/// member's gradients are sent from where they are, and the sum grows in its place. Not
/// thread-safe.
class BucketProgress {
 public:
  /// `in` and `out` have the same size and stay valid.
  BucketProgress(ChunkPlan plan, SumType type, std::span<const std::byte> in,
                 std::span<std::byte> out);

  /// A chunk that can leave now; each is given once, in order.
  struct Outgoing {
    uint32_t peer = 0;
    uint32_t chunk = 0;
    std::span<const std::byte> bytes;
  };
  std::optional<Outgoing> NextSend();
  /// A chunk that NextSend gave has left.
  void Sent();

  /// kInvalidArgument: this is not the next chunk of `peer`.
  absl::Status Check(uint32_t peer, const FrameHeader& header) const;
  /// The place for the payload of the next chunk. Requires: Check has returned OK.
  std::span<std::byte> PlaceOf(uint32_t peer);
  /// The payload is in its place.
  void Arrived(uint32_t peer);
  /// The payload is in `payload`, which need not be aligned and may change.
  void Arrived(uint32_t peer, std::span<const std::byte> payload);

  /// All chunks have come and left.
  bool done() const { return applied_ == plan_.receives.size() && sent_ == plan_.sends.size(); }
  /// CRC-32C of the sum. Requires: done().
  uint32_t crc() const;
  SumType type() const { return type_; }
  uint64_t elements() const { return out_.size() / ElementBytes(type_); }

 private:
  struct Receive {
    std::vector<std::byte> scratch;  // of kAddToSum
    bool arrived = false;
  };
  struct FromPeer {
    std::vector<size_t> receives;  // of the plan, in order
    size_t arrived = 0;
  };
  std::span<std::byte> OutBytes(ElementRange range) const;
  std::span<const std::byte> InBytes(ElementRange range) const;
  std::span<std::byte> PlaceOfReceive(size_t index);
  size_t BytesOf(const PlannedReceive& receive) const {
    return receive.range.count * ElementBytes(type_);
  }
  void ApplyArrived();
  /// `payload`: where its elements are.
  void Apply(size_t index, std::span<const std::byte> payload);

  const ChunkPlan plan_;
  const SumType type_;
  const std::span<const std::byte> in_;
  const std::span<std::byte> out_;
  std::vector<Receive> receives_;  // as in the plan
  std::map<uint32_t, FromPeer> peers_;
  std::map<uint32_t, uint32_t> chunks_to_;  // given by NextSend so far
  size_t applied_ = 0;                      // of the plan's receives, in order
  size_t given_ = 0;                        // of its sends
  size_t sent_ = 0;
  struct FinalPiece {
    uint32_t crc = 0;
    uint64_t bytes = 0;
  };
  std::map<uint64_t, FinalPiece> final_;  // by their first element
};

}  // namespace muster::collectives::internal
