#include "base/interval_set.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace muster {

void IntervalSet::Add(uint64_t begin, uint64_t end) {
  MUSTER_CHECK(begin < end);
  auto next = intervals_.upper_bound(begin);
  if (next != intervals_.begin()) {
    const auto previous = std::prev(next);
    if (previous->second >= begin) {
      if (previous->second >= end) return;
      begin = previous->first;
      next = previous;
    }
  }
  while (next != intervals_.end() && next->first <= end) {
    end = std::max(end, next->second);
    count_ -= next->second - next->first;
    next = intervals_.erase(next);
  }
  intervals_.emplace_hint(next, begin, end);
  count_ += end - begin;
}

void IntervalSet::Remove(uint64_t begin, uint64_t end) {
  MUSTER_CHECK(begin <= end);
  if (begin == end) return;
  auto at = intervals_.upper_bound(begin);
  if (at != intervals_.begin() && std::prev(at)->second > begin) --at;
  while (at != intervals_.end() && at->first < end) {
    const auto [first, last] = *at;
    at = intervals_.erase(at);
    count_ -= std::min(last, end) - std::max(first, begin);
    if (first < begin) intervals_.emplace_hint(at, first, begin);
    if (last > end) at = intervals_.emplace_hint(at, end, last);
  }
}

bool IntervalSet::Contains(uint64_t value) const {
  const auto next = intervals_.upper_bound(value);
  return next != intervals_.begin() && std::prev(next)->second > value;
}

}  // namespace muster
