#include "collectives/chunk_plan.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace muster::collectives {
namespace {

// Bytes of a slice: large enough that a header costs nothing, small enough for a processor's cache.
constexpr uint64_t kSliceBytes = 256u << 10;

/// Part `part` of the bucket; the parts differ by at most one element.
ElementRange PartOf(const PlanOptions& options, uint32_t part) {
  const uint64_t each = options.elements / options.members;
  const uint64_t longer = options.elements % options.members;
  return {part * each + std::min<uint64_t>(part, longer), each + (part < longer ? 1 : 0)};
}

std::vector<ElementRange> SlicesOf(ElementRange part, uint64_t most) {
  std::vector<ElementRange> slices;
  for (uint64_t done = 0; done < part.count; done += most) {
    slices.push_back({part.first + done, std::min(most, part.count - done)});
  }
  return slices;
}

/// The members below `rank` in the tree, nearest first, and the one above; rank 0 has none.
struct TreePlace {
  std::vector<uint32_t> below;
  uint32_t above = 0;
};
TreePlace TreePlaceOf(uint32_t members, uint32_t rank) {
  TreePlace place;
  for (uint32_t bit = 1; bit < members; bit <<= 1) {
    if ((rank & bit) != 0) {
      place.above = rank - bit;
      break;
    }
    if (rank + bit < members) place.below.push_back(rank + bit);
  }
  return place;
}

}  // namespace

ChunkPlan RingPlan(const PlanOptions& options) {
  const uint32_t members = options.members, rank = options.rank;
  MUSTER_CHECK(members >= 2 && rank < members && options.slice_elements > 0);
  const uint32_t next = (rank + 1) % members, former = (rank + members - 1) % members;
  const auto slices = [&](uint32_t part) {
    return SlicesOf(PartOf(options, part % members), options.slice_elements);
  };
  ChunkPlan plan;
  // Round r: part rank - r leaves, and part rank - r - 1 comes, which leaves in the next round. In
  // the first members - 1 rounds members add, and then they copy.
  const uint32_t rounds = 2 * (members - 1);
  size_t before_former_round = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    size_t after = before_former_round;
    for (const ElementRange& range : slices(rank + 2 * members - round)) {
      after += round == 0 ? 0 : 1;
      plan.sends.push_back({.peer = next, .range = range, .own = round == 0, .after = after});
    }
    before_former_round = plan.receives.size();
    for (const ElementRange& range : slices(rank + 2 * members - round - 1)) {
      plan.receives.push_back(
          {.peer = former,
           .range = range,
           .on_arrival = round + 1 < members ? OnArrival::kAdd : OnArrival::kCopy,
           .final = round + 2 >= members});
    }
  }
  return plan;
}

ChunkPlan TreePlan(const PlanOptions& options) {
  const uint32_t members = options.members, rank = options.rank;
  MUSTER_CHECK(members >= 2 && rank < members);
  const ElementRange all{0, options.elements};
  if (members == 2) {
    const uint32_t other = 1 - rank;
    return {.receives = {{other, all, OnArrival::kAdd, true}},
            .sends = {{.peer = other, .range = all, .own = true, .after = 0}}};
  }
  const TreePlace place = TreePlaceOf(members, rank);
  ChunkPlan plan;
  for (const uint32_t below : place.below) {
    const bool first = plan.receives.empty();
    plan.receives.push_back({below, all, first ? OnArrival::kAdd : OnArrival::kAddToSum,
                             rank == 0 && below == place.below.back()});
  }
  if (rank != 0) {
    plan.sends.push_back({.peer = place.above,
                          .range = all,
                          .own = place.below.empty(),
                          .after = plan.receives.size()});
    plan.receives.push_back({place.above, all, OnArrival::kCopy, true});
  }
  // The farthest first: it has the most members below.
  for (auto below = place.below.rbegin(); below != place.below.rend(); ++below) {
    plan.sends.push_back(
        {.peer = *below, .range = all, .own = false, .after = plan.receives.size()});
  }
  return plan;
}

ChunkPlan PlanOf(PlanOptions options, size_t element_bytes) {
  if (options.members < 2 || options.elements == 0) return {};
  if (options.elements * element_bytes <= kTreeBytesMax) return TreePlan(options);
  options.slice_elements = kSliceBytes / element_bytes;
  return RingPlan(options);
}

std::vector<uint32_t> PeersOf(uint32_t members, uint32_t rank) {
  if (members < 2) return {};
  const TreePlace place = TreePlaceOf(members, rank);
  std::set<uint32_t> peers(place.below.begin(), place.below.end());
  if (rank != 0) peers.insert(place.above);
  peers.insert((rank + 1) % members);
  peers.insert((rank + members - 1) % members);
  return {peers.begin(), peers.end()};
}

}  // namespace muster::collectives
