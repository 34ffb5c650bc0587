#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/messages/group_control.h"

namespace muster::sdk {

/// How many bytes an element of a bucket has in the form in which members add it: int64, float32 or
/// bfloat16.
size_t SummedBytes(GroupDtype dtype);

/// Buckets of one type that are added with those of the other members at once. In memory, they lie
/// one after the other.
struct BucketBlock {
  GroupDtype dtype = GroupDtype::kFixedPoint;
  uint32_t fraction_bits = 0;
  uint64_t elements = 0;
  std::vector<uint32_t> buckets;  // ascending
  uint64_t bytes() const { return elements * SummedBytes(dtype); }
};

/// Puts the buckets of a group together into blocks. An exchange with other members costs the same
/// for a small bucket as for a large one, so small buckets share one. The blocks follow from the
/// registered tensors alone, so all members have the same.
///
/// A bucket joins the open block of its type. The block is full, and is closed, when it has
/// `full_bytes`. A larger bucket is a block of its own. So at most one block of each type is
/// smaller. Blocks have the order of their last buckets: when buckets become complete in the order
/// of their numbers, so do the blocks, and none waits for more than `full_bytes` of its type.
///
/// Pure and immutable.
class BucketBlocks {
 public:
  /// Large enough that the exchange costs little beside the addition, and small enough that the
  /// first blocks are added while a backward pass still computes the last ones.
  static constexpr uint64_t kFullBytes = uint64_t{1} << 20;
  struct Place {
    uint32_t block = 0;
    uint64_t first = 0;  // element of the block
    uint64_t elements = 0;
  };

  /// Of the summed ones of the tensors, in order. With `full_bytes` 0, each bucket is a block, and
  /// has its number.
  explicit BucketBlocks(std::span<const GroupTensor> tensors, uint64_t full_bytes = kFullBytes);

  size_t size() const { return blocks_.size(); }
  const BucketBlock& operator[](uint32_t block) const { return blocks_[block]; }
  size_t buckets() const { return places_.size(); }
  const Place& PlaceOf(uint32_t bucket) const { return places_[bucket]; }
  /// The bucket that has this element of a block. Requires: the block has it.
  uint32_t BucketAt(uint32_t block, uint64_t element) const;

 private:
  std::vector<BucketBlock> blocks_;
  std::vector<Place> places_;
};

}  // namespace muster::sdk
