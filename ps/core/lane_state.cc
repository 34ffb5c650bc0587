#include "ps/core/lane_state.h"

#include "base/check.h"

namespace muster::ps {
LaneState::LaneState(const Options& options)
    : options_(options),
      slots_((options.partition_count + options.lane_count - 1) / options.lane_count) {
  MUSTER_CHECK(options.lane < options.lane_count);
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].index = i;
    slots_[i].id = PartitionId(static_cast<uint32_t>(i) * options.lane_count + options.lane);
  }
}

Slot* LaneState::Find(PartitionId partition) {
  const uint32_t id = partition.value();
  // Divisions take longer than everything else here.
  if (options_.lane_count == 1) return id < slots_.size() ? &slots_[id] : nullptr;
  if (id >= options_.partition_count || id % options_.lane_count != options_.lane) return nullptr;
  return &slots_[id / options_.lane_count];
}

wire::PartCode LaneState::Admit(uint32_t partition, uint64_t owner_epoch) {
  const Slot* const slot = Find(PartitionId(partition));
  // The state of another epoch may lack parts that were confirmed under this epoch.
  // Rule 2.2.
  if (slot == nullptr || slot->epoch != OwnerEpoch(owner_epoch) || !slot->HasState()) {
    return wire::PartCode::kWrongOwner;
  }
  return slot->partition == nullptr ? wire::PartCode::kRetry : wire::PartCode::kOk;
}

}  // namespace muster::ps
