#include "verify/recovery.h"

#include <algorithm>

namespace muster::verify {

RecoveryTimes Summarise(std::vector<double> times_ms) {
  if (times_ms.empty()) return {};
  std::ranges::sort(times_ms);
  const size_t middle = times_ms.size() / 2;
  const double median =
      times_ms.size() % 2 == 1 ? times_ms[middle] : (times_ms[middle - 1] + times_ms[middle]) / 2;
  return {.count = times_ms.size(), .median_ms = median, .worst_ms = times_ms.back()};
}

void WorkerRecoveries::AddBegin(const ProcessName& process, const ShardMark& mark) {
  open_[process] = mark.shard;
  attempts_.try_emplace(mark.shard);
}

void WorkerRecoveries::AddAttempt(const ProcessName& process, const Attempt& attempt) {
  attempts_[attempt.shard].push_back({attempt.at_ns, process});
}

void WorkerRecoveries::AddFinish(const ProcessName& process, const ShardMark& mark) {
  std::optional<ShardName>& open = open_[process];
  if (open == mark.shard) open.reset();
}

std::vector<double> WorkerRecoveries::Times(const std::vector<WorkerKill>& kills) const {
  std::vector<double> times;
  for (const WorkerKill& kill : kills) {
    const auto open = open_.find(kill.process);
    if (open == open_.end() || !open->second.has_value()) continue;
    std::optional<uint64_t> first;
    for (const Begun& begun : attempts_.at(*open->second)) {
      if (begun.process == kill.process || begun.at_ns < kill.at_ns) continue;
      first = std::min(first.value_or(begun.at_ns), begun.at_ns);
    }
    if (first.has_value()) times.push_back(static_cast<double>(*first - kill.at_ns) / 1e6);
  }
  return times;
}

}  // namespace muster::verify
