#include "worker_sdk/member_core/bucket_blocks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace muster::sdk {

size_t SummedBytes(GroupDtype dtype) {
  switch (dtype) {
    case GroupDtype::kFixedPoint:
      return sizeof(int64_t);
    case GroupDtype::kFloat32:
      return sizeof(float);
    default:
      return sizeof(uint16_t);  // bfloat16
  }
}

BucketBlocks::BucketBlocks(std::span<const GroupTensor> tensors, uint64_t full_bytes) {
  std::map<std::pair<GroupDtype, uint32_t>, BucketBlock> open;  // by type and fraction_bits
  for (const GroupTensor& tensor : tensors) {
    if (!tensor.summed) continue;
    const auto bucket = static_cast<uint32_t>(places_.size());
    BucketBlock alone{tensor.dtype, tensor.fraction_bits, tensor.elements, {bucket}};
    places_.push_back({.elements = tensor.elements});
    if (alone.bytes() >= full_bytes) {
      blocks_.push_back(std::move(alone));
      continue;
    }
    BucketBlock& block =
        open.try_emplace({tensor.dtype, tensor.fraction_bits}, tensor.dtype, tensor.fraction_bits)
            .first->second;
    places_[bucket].first = block.elements;
    block.elements += tensor.elements;
    block.buckets.push_back(bucket);
    if (block.bytes() < full_bytes) continue;
    blocks_.push_back(std::move(block));
    open.erase({tensor.dtype, tensor.fraction_bits});
  }
  for (auto& [type, block] : open) blocks_.push_back(std::move(block));
  std::ranges::sort(blocks_, {}, [](const BucketBlock& block) { return block.buckets.back(); });
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    for (const uint32_t bucket : blocks_[i].buckets) places_[bucket].block = i;
  }
}

uint32_t BucketBlocks::BucketAt(uint32_t block, uint64_t element) const {
  const std::vector<uint32_t>& buckets = blocks_[block].buckets;
  const auto after = std::ranges::upper_bound(
      buckets, element, {}, [this](uint32_t bucket) { return places_[bucket].first; });
  return *std::prev(after);
}

}  // namespace muster::sdk
