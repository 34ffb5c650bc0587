#include "worker_sdk/core/confirmed_parts.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "base/check.h"

namespace muster::sdk {
namespace {

constexpr uint32_t kWordBits = 64;

void Set(MinibatchIndex minibatch, PooledVector<uint64_t>* bits) {
  const size_t word = minibatch.value() / kWordBits;
  if (word >= bits->size()) bits->resize(word + 1);
  (*bits)[word] |= uint64_t{1} << (minibatch.value() % kWordBits);
}

void Clear(MinibatchIndex minibatch, PooledVector<uint64_t>* bits) {
  const size_t word = minibatch.value() / kWordBits;
  if (word < bits->size()) (*bits)[word] &= ~(uint64_t{1} << (minibatch.value() % kWordBits));
}

bool Has(MinibatchIndex minibatch, const PooledVector<uint64_t>& bits) {
  const size_t word = minibatch.value() / kWordBits;
  return word < bits.size() && (bits[word] >> (minibatch.value() % kWordBits) & 1) != 0;
}

}  // namespace

ConfirmedParts::Partition& ConfirmedParts::At(PartitionId partition) {
  if (partition.value() >= partitions_.size()) partitions_.resize(partition.value() + 1);
  return partitions_[partition.value()];
}

void ConfirmedParts::Add(PartitionId partition, MinibatchIndex minibatch, RestoreEpoch sent_under) {
  Partition& parts = At(partition);
  if (sent_under >= parts.restored_at) {
    Set(minibatch, &parts.sure);
    Clear(minibatch, &parts.doubted);
    Clear(minibatch, &parts.lost);
  } else if (!Has(minibatch, parts.sure)) {
    Set(minibatch, &parts.doubted);
  }
}

void ConfirmedParts::Lose(PartitionId partition, MinibatchIndex minibatch,
                          RestoreEpoch sent_under) {
  Partition& parts = At(partition);
  if (sent_under < parts.restored_at) return;
  Clear(minibatch, &parts.doubted);
  Set(minibatch, &parts.lost);
}

void ConfirmedParts::Pushed(PartitionId partition, MinibatchIndex minibatch) {
  Clear(minibatch, &At(partition).lost);
}

void ConfirmedParts::ForgetLost() {
  for (Partition& parts : partitions_) parts.lost.clear();
}

void ConfirmedParts::TakeMap(const PartitionMap& map) {
  for (uint32_t id = 0; id < map.partitions.size(); ++id) {
    Partition& parts = At(PartitionId(id));
    const RestoreEpoch restored_at = map.partitions[id].restored_at;
    // After a partition's newest restore, its earlier confirmations are in doubt.
    if (restored_at > parts.restored_at) {
      parts.restored_at = restored_at;
      parts.doubted.resize(std::max(parts.doubted.size(), parts.sure.size()));
      for (size_t word = 0; word < parts.sure.size(); ++word) {
        parts.doubted[word] |= std::exchange(parts.sure[word], 0);
      }
    }
    MUSTER_CHECK(parts.restored_at >= restored_at);
  }
}

std::vector<ConfirmedParts::Minibatch> ConfirmedParts::Doubted(size_t limit) const {
  return Collect(&Partition::doubted, limit);
}

std::vector<ConfirmedParts::Minibatch> ConfirmedParts::Lost() const {
  return Collect(&Partition::lost, std::numeric_limits<size_t>::max());
}

std::vector<ConfirmedParts::Minibatch> ConfirmedParts::Collect(Bits Partition::* which,
                                                               size_t limit) const {
  std::map<MinibatchIndex, std::vector<PartitionId>> found;
  for (uint32_t id = 0; id < partitions_.size(); ++id) {
    const Bits& words = partitions_[id].*which;
    for (size_t word = 0; word < words.size(); ++word) {
      for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<uint32_t>(std::countr_zero(bits));
        found[MinibatchIndex(static_cast<uint32_t>(word) * kWordBits + bit)].push_back(
            PartitionId(id));
      }
    }
  }
  std::vector<Minibatch> minibatches;
  for (auto& [minibatch, partitions] : found) {
    if (minibatches.size() == limit) break;
    minibatches.push_back({minibatch, std::move(partitions)});
  }
  return minibatches;
}

}  // namespace muster::sdk
