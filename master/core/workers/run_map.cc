#include "master/core/workers/run_map.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster {

RunMap::Runs::const_iterator RunMap::RunOf(uint64_t key) const {
  const auto next = runs_.upper_bound(key);
  if (next == runs_.begin() || std::prev(next)->second.end <= key) return runs_.end();
  return std::prev(next);
}

std::optional<uint64_t> RunMap::Find(uint64_t key) const {
  const auto run = RunOf(key);
  if (run == runs_.end()) return std::nullopt;
  return run->second.value + (key - run->first);
}

void RunMap::BeginAt(Runs::const_iterator run, uint64_t begin) {
  const auto hint = std::next(run);
  auto node = runs_.extract(run);
  node.mapped().value += begin - node.key();  // modulo 2^64, so backwards as well
  node.key() = begin;
  runs_.insert(hint, std::move(node));
}

void RunMap::Set(uint64_t key, uint64_t value) {
  Take(key);
  const auto next = runs_.upper_bound(key);
  const bool joins_next =
      next != runs_.end() && next->first == key + 1 && next->second.value == value + 1;
  if (next != runs_.begin()) {
    const auto before = std::prev(next);
    Rest& rest = before->second;
    if (rest.end == key && rest.value + (key - before->first) == value) {
      rest.end = joins_next ? next->second.end : key + 1;
      if (joins_next) runs_.erase(next);
      return;
    }
  }
  if (joins_next) return BeginAt(next, key);
  runs_.emplace_hint(next, key, Rest{key + 1, value});
}

std::optional<uint64_t> RunMap::Take(uint64_t key) {
  const auto found = RunOf(key);
  if (found == runs_.end()) return std::nullopt;
  const auto [begin, rest] = *found;
  const uint64_t value = rest.value + (key - begin);
  if (key == begin) {
    if (key + 1 == rest.end) {
      runs_.erase(found);
    } else {
      BeginAt(found, key + 1);
    }
    return value;
  }
  runs_.find(begin)->second.end = key;
  if (key + 1 < rest.end) runs_.emplace_hint(std::next(found), key + 1, Rest{rest.end, value + 1});
  return value;
}

std::vector<RunMap::Run> RunMap::TakeBelow(uint64_t limit) {
  std::vector<Run> taken;
  while (!runs_.empty() && runs_.begin()->first < limit) {
    const auto first = runs_.begin();
    const Run run{first->first, std::min(first->second.end, limit), first->second.value};
    taken.push_back(run);
    if (run.end == first->second.end) {
      runs_.erase(first);
    } else {
      BeginAt(first, run.end);
    }
  }
  return taken;
}

}  // namespace muster
