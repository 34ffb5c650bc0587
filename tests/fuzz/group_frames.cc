#include <cstring>
#include <deque>
#include <vector>

#include "base/check.h"
#include "base/checksum/crc32c.h"
#include "collectives/frames.h"
#include "collectives/internal/bucket_progress.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

using namespace collectives;

constexpr uint64_t kElements = 10;

/// A bucket of rank 0, whose own sends leave at once.
class Bucket {
 public:
  explicit Bucket(ChunkPlan plan)
      : work_(std::move(plan), SumType::kFloat32, std::as_bytes(std::span(in_)),
              std::as_writable_bytes(std::span(out_))) {
    Send();
  }
  void Take(uint32_t peer, const FrameHeader& header, std::string_view payload) {
    if (!work_.Check(peer, header).ok()) return;
    const auto bytes = std::as_bytes(std::span(payload));
    if (header.lineage.value() % 2 == 1) {
      work_.Arrived(peer, bytes);
    } else {
      const std::span<std::byte> place = work_.PlaceOf(peer);
      MUSTER_CHECK(place.size() == bytes.size());
      std::memcpy(place.data(), bytes.data(), bytes.size());
      work_.Arrived(peer);
    }
    Send();
    if (work_.done()) MUSTER_CHECK(work_.crc() == Crc32c(std::as_bytes(std::span(out_))));
  }

 private:
  void Send() {
    while (work_.NextSend()) work_.Sent();
  }

  const std::vector<float> in_ = std::vector<float>(kElements, 1);
  std::vector<float> out_ = std::vector<float>(kElements, 0);
  internal::BucketProgress work_;
};

/// What was read can be written, and is then the same.
template <typename T>
void CheckMessage(const absl::StatusOr<T>& read,
                  absl::StatusOr<T> (*decode)(std::string_view bytes)) {
  if (!read.ok()) return;
  const absl::StatusOr<T> again = decode(EncodeMessage(*read));
  MUSTER_CHECK(again.ok() && *again == *read);
}

void TakeMessage(FrameKind kind, std::string_view payload) {
  switch (kind) {
    case FrameKind::kHello:
      return CheckMessage(DecodeMessage<Hello>(payload), &DecodeMessage<Hello>);
    case FrameKind::kHelloReply:
      return CheckMessage(DecodeMessage<HelloReply>(payload), &DecodeMessage<HelloReply>);
    case FrameKind::kFetch:
      return CheckMessage(DecodeMessage<FetchRequest>(payload), &DecodeMessage<FetchRequest>);
    case FrameKind::kNotFetched:
      return CheckMessage(DecodeMessage<FetchError>(payload), &DecodeMessage<FetchError>);
    case FrameKind::kBegin:
    case FrameKind::kLeave:
      MUSTER_CHECK(payload.empty());
      return;
    case FrameKind::kChunk:
    case FrameKind::kFetched:
      return;
  }
}

}  // namespace

void FuzzGroupFrames(std::string_view bytes) {
  FuzzInput input(bytes);
  const PlanOptions tree{.members = 4, .rank = 0, .elements = kElements};
  const PlanOptions ring{.members = 3, .rank = 0, .elements = kElements, .slice_elements = 2};
  std::deque<Bucket> buckets;
  for (int i = 0; i < 2; ++i) {
    buckets.emplace_back(TreePlan(tree));
    buckets.emplace_back(RingPlan(ring));
  }
  while (input.rest().size() >= kFrameHeaderBytes) {
    const auto head = std::as_bytes(std::span(input.Bytes(kFrameHeaderBytes)));
    const auto header = DecodeFrameHeader(head.first<kFrameHeaderBytes>());
    if (!header.ok()) return;
    std::array<std::byte, kFrameHeaderBytes> again;
    EncodeFrameHeader(*header, again);
    MUSTER_CHECK(std::memcmp(again.data(), head.data(), again.size()) == 0);
    if (header->payload_bytes > input.rest().size()) return;
    const std::string_view payload = input.Bytes(header->payload_bytes);
    if (header->kind != FrameKind::kChunk) {
      TakeMessage(header->kind, payload);
    } else if (header->bucket < buckets.size()) {
      const auto peer = static_cast<uint32_t>(header->step.value() % 4);
      buckets[header->bucket].Take(peer, *header, payload);
    }
  }
}

}  // namespace muster::testing
