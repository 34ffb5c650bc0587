#include "master/journal/generations.h"

#include <algorithm>

namespace muster {
namespace {

using What = StartChoice::What;

/// A restart of a master that lost the job would take it back, and both would do so without end.
bool WasTakenFrom(const StartFacts& facts, uint64_t newest) {
  if (facts.starter.empty()) return false;
  if (std::ranges::count(facts.superseded, facts.starter) > 0) return true;
  return std::ranges::any_of(facts.generations, [&](const Generation& generation) {
    return generation.number < newest && generation.starter == facts.starter;
  });
}

}  // namespace

const Generation* NewestComplete(const std::vector<Generation>& generations) {
  const Generation* newest = nullptr;
  for (const Generation& generation : generations) {
    if (generation.complete) newest = &generation;
  }
  return newest;
}

StartChoice ChooseGeneration(const StartFacts& facts) {
  if (facts.generations.empty()) return {What::kAdopt, 1, 0};
  const uint64_t highest = facts.generations.back().number;
  const Generation* const newest = NewestComplete(facts.generations);
  if (newest == nullptr) return {What::kTakeOver, highest + 1, 0};
  const uint64_t number = newest->number;
  const bool ours = !facts.starter.empty() && newest->starter == facts.starter;
  if (!ours && WasTakenFrom(facts, number)) {
    return {What::kSuperseded, number, 0};
  }
  if (facts.locked && !facts.take_over) return {What::kLocked, number, 0};
  const bool last = number == highest && !newest->closed && !facts.locked;
  if (last && !newest->owned) return {What::kAdopt, 1, 0};
  if (last && !facts.machine.empty() && newest->machine == facts.machine) {
    return {What::kContinue, number, 0};
  }
  return {What::kTakeOver, highest + 1, number};
}

std::vector<uint64_t> Removable(const std::vector<Generation>& generations, uint64_t own,
                                uint64_t source) {
  std::vector<uint64_t> numbers;
  for (const Generation& generation : generations) {
    const bool unfinished = !generation.complete && generation.closed;
    const uint64_t before = unfinished && source > 0 ? own : std::min(own, source);
    if (generation.number < before) numbers.push_back(generation.number);
  }
  return numbers;
}

}  // namespace muster
