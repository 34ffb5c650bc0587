#include "worker_sdk/core/key_set.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace muster::sdk {

KeyIndex::KeyIndex(size_t keys) {
  keys_.reserve(keys);
  Rehash(std::bit_ceil(std::max<size_t>(keys * 2, 16)));
}

uint32_t KeyIndex::Insert(uint64_t key) {
  if (keys_.size() * 2 >= slots_.size()) Rehash(slots_.size() * 2);
  size_t mask = slots_.size() - 1;
  for (size_t slot = Mix64(key) & mask;; slot = (slot + 1) & mask) {
    uint32_t id = slots_[slot];
    if (id == 0) {
      keys_.push_back(key);
      slots_[slot] = static_cast<uint32_t>(keys_.size());
      return slots_[slot] - 1;
    }
    if (keys_[id - 1] == key) return id - 1;
  }
}

void KeyIndex::Rehash(size_t slots) {
  MUSTER_CHECK(slots <= (uint64_t{1} << 32));
  slots_.assign(slots, 0);
  for (size_t i = 0; i < keys_.size(); ++i) {
    size_t slot = Mix64(keys_[i]) & (slots - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots - 1);
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

KeySet MakeKeySet(std::span<const uint64_t> keys) {
  KeySet result;
  result.original.assign(keys.begin(), keys.end());
  KeyIndex index(keys.size());
  result.inverse.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) result.inverse[i] = index.Insert(keys[i]);
  result.unique = std::move(index).TakeKeys();
  if (result.unique.size() == keys.size()) {
    result.inverse.clear();
    return result;
  }
  // Has no branch, because the processor would have to predict it at every key.
  result.first.resize(result.unique.size() + 1);
  size_t next = 0;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    result.first[next] = i;
    next += result.inverse[i] == next ? 1 : 0;
  }
  result.first.pop_back();
  return result;
}

std::optional<size_t> FirstNonFinite(std::span<const float> values) {
  // An exponent of all ones is NaN or infinity; or-ing lets the compiler vectorise the common case.
  constexpr uint32_t kExponent = 0x7f800000u;
  constexpr size_t kBlock = 1024;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    size_t end = std::min(begin + kBlock, values.size());
    uint32_t bad = 0;
    for (size_t i = begin; i < end; ++i) {
      bad |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent ? 1u : 0u;
    }
    if (bad == 0) continue;
    for (size_t i = begin; i < end; ++i) {
      if ((std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent) return i;
    }
  }
  return std::nullopt;
}

}  // namespace muster::sdk
