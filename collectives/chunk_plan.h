#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// Which member sends which part of a bucket to which, and when. Pure. Every member computes its
/// own plan from the same numbers, so the plans fit together.
namespace muster::collectives {

/// Elements [first, first + count) of a bucket.
struct ElementRange {
  uint64_t first = 0;
  uint64_t count = 0;
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// What this member does with elements that it receives.
enum class OnArrival : uint8_t {
  kCopy = 0,      // they are the sum
  kAdd = 1,       // adds its own gradients
  kAddToSum = 2,  // adds them to what it has added before, its own gradients included
};

struct PlannedReceive {
  uint32_t peer = 0;
  ElementRange range;
  OnArrival on_arrival = OnArrival::kCopy;
  /// After that, the range is the sum of all members.
  bool final = false;
  friend bool operator==(const PlannedReceive&, const PlannedReceive&) = default;
};

struct PlannedSend {
  uint32_t peer = 0;
  ElementRange range;
  /// This member's own gradients; otherwise what it has added or received so far.
  bool own = false;
  /// It can leave when so many of the plan's receives are done.
  size_t after = 0;
  friend bool operator==(const PlannedSend&, const PlannedSend&) = default;
};

/// Each list is in the order in which its entries happen. The ranges of the final receives are all
/// elements, once each; without peers there are no receives.
struct ChunkPlan {
  std::vector<PlannedReceive> receives;
  std::vector<PlannedSend> sends;
};

/// A bucket of these elements, and this member of the group.
struct PlanOptions {
  uint32_t members = 1;
  uint32_t rank = 0;
  uint64_t elements = 0;
  /// Longest part of a ring that is sent at a time, so that adding and sending overlap.
  uint64_t slice_elements = 65'536;
};

/// The bucket is cut into one part per member. Each part goes once around the ring while all add to
/// it, and once more to all: a member sends about twice the bucket, however many members there are.
/// Requires: at least 2 members.
ChunkPlan RingPlan(const PlanOptions& options);
/// For small buckets: sums go up a binomial tree to rank 0, and the sum goes down. Two members send
/// to each other. Requires: at least 2 members.
ChunkPlan TreePlan(const PlanOptions& options);
/// A bucket of more bytes is summed in a ring.
inline constexpr uint64_t kTreeBytesMax = 32u << 10;
/// The plan for a bucket of elements of this size: empty for one member, and for no elements.
ChunkPlan PlanOf(PlanOptions options, size_t element_bytes);

/// The members with which a member exchanges elements, whatever the bucket; sorted.
std::vector<uint32_t> PeersOf(uint32_t members, uint32_t rank);

}  // namespace muster::collectives
