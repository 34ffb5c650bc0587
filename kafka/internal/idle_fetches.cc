#include "kafka/internal/idle_fetches.h"

#include <algorithm>
#include <iterator>

namespace muster::kafka::internal {

void IdleFetches::Add(const Partition& partition, bool expected, TimePoint now) {
  Remove(partition);
  order_.push_back({partition, expected, now});
  places_[partition] = std::prev(order_.end());
}

void IdleFetches::Remove(const Partition& partition) {
  const auto found = places_.find(partition);
  if (found == places_.end()) return;
  order_.erase(found->second);
  places_.erase(found);
}

std::vector<IdleFetches::Partition> IdleFetches::TakeSurplus(size_t reading, TimePoint now) {
  std::vector<Partition> surplus;
  const auto take = [&](std::list<Fetch>::iterator fetch) {
    surplus.push_back(fetch->partition);
    Remove(surplus.back());
  };
  while (!order_.empty() && now - order_.front().used >= options_.unused_max) take(order_.begin());
  while (!order_.empty() && order_.size() + reading > options_.most) {
    const auto found =
        std::ranges::find_if(order_, [](const Fetch& fetch) { return !fetch.expected; });
    take(found == order_.end() ? order_.begin() : found);
  }
  return surplus;
}

}  // namespace muster::kafka::internal
