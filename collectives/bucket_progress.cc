#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/checksum/crc32c.h"
#include "collectives/internal/bucket_progress.h"

namespace muster::collectives::internal {

BucketProgress::BucketProgress(ChunkPlan plan, SumType type, std::span<const std::byte> in,
                               std::span<std::byte> out)
    : plan_(std::move(plan)), type_(type), in_(in), out_(out), receives_(plan_.receives.size()) {
  MUSTER_CHECK(in_.size() == out_.size());
  for (size_t i = 0; i < plan_.receives.size(); ++i) {
    peers_[plan_.receives[i].peer].receives.push_back(i);
  }
  if (plan_.receives.empty() && !out_.empty()) {  // the only member
    std::memcpy(out_.data(), in_.data(), in_.size());
    final_.emplace(0, FinalPiece{Crc32c(out_), out_.size()});
  }
}

std::span<std::byte> BucketProgress::OutBytes(ElementRange range) const {
  const size_t each = ElementBytes(type_);
  return out_.subspan(range.first * each, range.count * each);
}

std::span<const std::byte> BucketProgress::InBytes(ElementRange range) const {
  const size_t each = ElementBytes(type_);
  return in_.subspan(range.first * each, range.count * each);
}

std::optional<BucketProgress::Outgoing> BucketProgress::NextSend() {
  if (given_ == plan_.sends.size()) return std::nullopt;
  const PlannedSend& send = plan_.sends[given_];
  if (applied_ < send.after) return std::nullopt;
  ++given_;
  return Outgoing{.peer = send.peer,
                  .chunk = chunks_to_[send.peer]++,
                  .bytes = send.own ? InBytes(send.range) : OutBytes(send.range)};
}

void BucketProgress::Sent() {
  MUSTER_CHECK(sent_ < given_);
  ++sent_;
}

std::span<std::byte> BucketProgress::PlaceOfReceive(size_t index) {
  const PlannedReceive& planned = plan_.receives[index];
  const std::span<std::byte> out = OutBytes(planned.range);
  if (planned.on_arrival != OnArrival::kAddToSum) return out;
  receives_[index].scratch.resize(out.size());
  return receives_[index].scratch;
}

absl::Status BucketProgress::Check(uint32_t peer, const FrameHeader& header) const {
  if (header.type != type_ || header.elements != elements()) {
    return absl::InvalidArgumentError(fmt::format(
        "its bucket {} has {} elements of {} bytes, that of this member {} of {}", header.bucket,
        header.elements, ElementBytes(header.type), elements(), ElementBytes(type_)));
  }
  const auto from = peers_.find(peer);
  if (from == peers_.end() || from->second.arrived == from->second.receives.size()) {
    return absl::InvalidArgumentError(
        fmt::format("it sent more chunks of bucket {} than planned", header.bucket));
  }
  if (header.chunk != from->second.arrived) {
    return absl::InvalidArgumentError(fmt::format("it sent chunk {} of bucket {} instead of {}",
                                                  header.chunk, header.bucket,
                                                  from->second.arrived));
  }
  const size_t bytes = BytesOf(plan_.receives[from->second.receives[from->second.arrived]]);
  if (bytes != header.payload_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("chunk {} of its bucket {} has {} bytes instead of {}", header.chunk,
                    header.bucket, header.payload_bytes, bytes));
  }
  return absl::OkStatus();
}

std::span<std::byte> BucketProgress::PlaceOf(uint32_t peer) {
  const FromPeer& from = peers_.at(peer);
  return PlaceOfReceive(from.receives[from.arrived]);
}

void BucketProgress::Arrived(uint32_t peer) {
  FromPeer& from = peers_.at(peer);
  receives_[from.receives[from.arrived++]].arrived = true;
  ApplyArrived();
}

void BucketProgress::Arrived(uint32_t peer, std::span<const std::byte> payload) {
  FromPeer& from = peers_.at(peer);
  const size_t index = from.receives[from.arrived];
  if (index != applied_) {
    std::memcpy(PlaceOfReceive(index).data(), payload.data(), payload.size());
    return Arrived(peer);
  }
  ++from.arrived;
  Apply(applied_++, payload);
  ApplyArrived();
}

void BucketProgress::ApplyArrived() {
  // Chunks are added in the order of the plan. So the sum does not depend on who is faster.
  for (; applied_ < receives_.size() && receives_[applied_].arrived; ++applied_) {
    Apply(applied_, PlaceOfReceive(applied_));
    receives_[applied_].scratch = {};
  }
}

void BucketProgress::Apply(size_t index, std::span<const std::byte> payload) {
  const PlannedReceive& planned = plan_.receives[index];
  const std::span<std::byte> out = OutBytes(planned.range);
  const bool in_place = payload.data() == out.data();
  switch (planned.on_arrival) {
    case OnArrival::kCopy:
      if (!in_place) std::memcpy(out.data(), payload.data(), payload.size());
      break;
    case OnArrival::kAdd:
      if (in_place) {
        AddElements(type_, InBytes(planned.range), out);
      } else {
        AddElements(type_, payload, InBytes(planned.range), out);
      }
      break;
    case OnArrival::kAddToSum:
      AddElements(type_, payload, out);
      break;
  }
  // The CRC is computed now, while the bytes are still in the processor's cache.
  if (planned.final) final_.emplace(planned.range.first, FinalPiece{Crc32c(out), out.size()});
}

uint32_t BucketProgress::crc() const {
  MUSTER_CHECK(done());
  uint32_t crc = 0;
  for (const auto& [first, piece] : final_) crc = JoinCrc32c(crc, piece.crc, piece.bytes);
  return crc;
}

}  // namespace muster::collectives::internal
