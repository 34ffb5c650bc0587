#include "collectives/internal/bucket_progress.h"

#include <gmock/gmock.h>

#include <cstring>
#include <deque>

#include "base/checksum/crc32c.h"
#include "base/random.h"
#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace muster::collectives::internal {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

/// Members whose chunks travel through memory, in an order that a seed decides; some are copied to
/// their places, and others lent.
class Members {
 public:
  Members(uint32_t count, uint64_t elements, uint64_t seed) : rng_(seed) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      std::vector<float>& in = in_.emplace_back();
      for (uint64_t i = 0; i < elements; ++i) {
        in.push_back(1.0f / static_cast<float>(1 + rng_.Below(1000)));
      }
      out_.emplace_back(elements, -1.0f);
    }
    for (uint32_t rank = 0; rank < count; ++rank) {
      PlanOptions options{count, rank, elements};
      ChunkPlan plan = PlanOf(options, sizeof(float));
      options.slice_elements = 1000;
      if (count > 1 && elements * sizeof(float) > kTreeBytesMax) plan = RingPlan(options);
      work_.emplace_back(std::move(plan), SumType::kFloat32, std::as_bytes(std::span(in_[rank])),
                         std::as_writable_bytes(std::span(out_[rank])));
    }
  }

  void Run() {
    for (;;) {
      std::vector<std::pair<uint32_t, uint32_t>> ways;
      for (uint32_t rank = 0; rank < work_.size(); ++rank) {
        while (const auto out = work_[rank].NextSend()) {
          on_the_way_[{rank, out->peer}].push_back(*out);
        }
      }
      for (const auto& [way, chunks] : on_the_way_) {
        if (!chunks.empty()) ways.push_back(way);
      }
      if (ways.empty()) return;
      Deliver(ways[rng_.Below(ways.size())]);
    }
  }

  /// Another order of the chunks, with the same gradients.
  void Skip() { rng_.Below(2); }

  std::vector<BucketProgress>& work() { return work_; }
  const std::vector<std::vector<float>>& in() const { return in_; }
  const std::vector<std::vector<float>>& out() const { return out_; }

 private:
  void Deliver(std::pair<uint32_t, uint32_t> way) {
    const auto [from, to] = way;
    const BucketProgress::Outgoing chunk = on_the_way_[way].front();
    on_the_way_[way].pop_front();
    const absl::Status fits = work_[to].Check(from, {.kind = FrameKind::kChunk,
                                                     .type = SumType::kFloat32,
                                                     .chunk = chunk.chunk,
                                                     .elements = work_[to].elements(),
                                                     .payload_bytes = chunk.bytes.size()});
    ASSERT_TRUE(fits.ok()) << Message(fits);
    if (rng_.Below(2) == 0) {
      const std::span<std::byte> place = work_[to].PlaceOf(from);
      std::memcpy(place.data(), chunk.bytes.data(), chunk.bytes.size());
      work_[from].Sent();
      return work_[to].Arrived(from);
    }
    // As in shared memory: not aligned, and gone afterwards.
    std::vector<std::byte> lent(1 + chunk.bytes.size());
    std::memcpy(lent.data() + 1, chunk.bytes.data(), chunk.bytes.size());
    work_[from].Sent();
    work_[to].Arrived(from, std::span(lent).subspan(1));
  }

  Rng rng_;
  std::vector<std::vector<float>> in_, out_;
  std::vector<BucketProgress> work_;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<BucketProgress::Outgoing>> on_the_way_;
};

TEST(BucketProgressTest, AllMembersGetTheSameSumInWhateverOrderChunksCome) {
  for (const uint32_t count : {1u, 2u, 3u, 5u, 8u, 11u}) {
    for (const uint64_t elements : {0u, 1u, 7u, 1000u, 50'003u}) {
      std::vector<float> former;
      for (const uint64_t seed : {1u, 2u, 3u}) {
        Members members(count, elements, seed);
        members.Run();
        for (uint32_t rank = 0; rank < count; ++rank) {
          ASSERT_TRUE(members.work()[rank].done()) << count << " members, " << elements;
          ASSERT_TRUE(members.out()[rank] == members.out()[0]);
          EXPECT_EQ(members.work()[rank].crc(),
                    Crc32c(std::as_bytes(std::span(members.out()[rank]))));
        }
        for (uint64_t i = 0; i < elements; ++i) {
          double sum = 0;
          for (const std::vector<float>& in : members.in()) sum += in[i];
          ASSERT_NEAR(members.out()[0][i], sum, 1e-5 * sum);
        }
      }
    }
  }
}

TEST(BucketProgressTest, TheOrderOfChunksDoesNotChangeTheBits) {
  for (const uint32_t count : {5u, 8u}) {
    for (const uint64_t elements : {1000u, 50'003u}) {
      Members first(count, elements, 1);
      first.Run();
      // The same gradients, delivered in another order.
      for (const uint64_t seed : {2u, 3u, 4u}) {
        Members again(count, elements, 1);
        for (uint64_t i = 0; i < seed; ++i) again.Skip();
        again.Run();
        EXPECT_TRUE(again.out() == first.out());
      }
    }
  }
}

TEST(BucketProgressTest, AChunkThatDoesNotFitIsRefused) {
  Members members(2, 10, 1);
  BucketProgress& work = members.work()[0];
  const FrameHeader right{.kind = FrameKind::kChunk, .elements = 10, .payload_bytes = 40};
  const auto refuses = [&](uint32_t peer, auto change, std::string_view text) {
    FrameHeader header = right;
    change(&header);
    EXPECT_THAT(work.Check(peer, header),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(text))));
  };
  refuses(1, [](FrameHeader* h) { h->elements = 11; }, "has 11 elements of 4 bytes");
  refuses(1, [](FrameHeader* h) { h->type = SumType::kInt64; }, "elements of 8 bytes");
  refuses(1, [](FrameHeader* h) { h->chunk = 1; }, "chunk 1 of bucket 0 instead of 0");
  refuses(1, [](FrameHeader* h) { h->payload_bytes = 36; }, "has 36 bytes instead of 40");
  refuses(2, [](FrameHeader* /*h*/) {}, "more chunks");
  ASSERT_TRUE(work.Check(1, right).ok());
  EXPECT_EQ(work.PlaceOf(1).size(), 40u);
  work.Arrived(1);
  refuses(1, [](FrameHeader* /*h*/) {}, "more chunks");
}

}  // namespace
}  // namespace muster::collectives::internal
