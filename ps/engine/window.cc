#include "ps/engine/window.h"

#include <algorithm>

#include "base/check.h"

namespace muster::ps {

const Window::Bits* Window::Find(const ShardId& shard) const {
  if (newest_.bits != nullptr && newest_.shard == shard) return newest_.bits;
  const auto found = shards_.find(shard);
  if (found == shards_.end()) return nullptr;
  newest_.shard = shard;
  newest_.bits = &found->second;
  return newest_.bits;
}

bool Window::Contains(const ShardId& shard, MinibatchIndex minibatch) const {
  const Bits* const bits = Find(shard);
  if (bits == nullptr) return false;
  const size_t word = minibatch.value() / 64;
  return word < bits->size() && ((*bits)[word] >> (minibatch.value() % 64) & 1) != 0;
}

void Window::Add(const ShardId& shard, MinibatchIndex minibatch) {
  MUSTER_CHECK(minibatch.value() < kMinibatchesMax);
  if (Find(shard) == nullptr) {
    newest_.bits = nullptr;  // the others may move
    shards_.try_emplace(shard);
  }
  Bits& bits = *const_cast<Bits*>(Find(shard));
  const size_t word = minibatch.value() / 64;
  if (word >= bits.size()) bits.resize(word + 1);
  const uint64_t bit = uint64_t{1} << (minibatch.value() % 64);
  MUSTER_CHECK((bits[word] & bit) == 0);
  bits[word] |= bit;
}

void Window::Forget(const ForgetState& state) {
  newest_.bits = nullptr;
  absl::erase_if(shards_, [&](const auto& entry) { return state.Contains(entry.first); });
}

void Window::Set(WindowEntry entry) {
  newest_.bits = nullptr;
  shards_[entry.shard].assign(entry.minibatches.begin(), entry.minibatches.end());
}

std::vector<WindowEntry> Window::Entries() const {
  std::vector<WindowEntry> entries;
  entries.reserve(shards_.size());
  for (const auto& [shard, bits] : shards_) entries.push_back({shard, {bits.begin(), bits.end()}});
  std::ranges::sort(entries, {}, &WindowEntry::shard);
  return entries;
}

}  // namespace muster::ps
