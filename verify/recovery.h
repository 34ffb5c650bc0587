#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verify/fault_plan.h"
#include "verify/workload/history.h"

namespace muster::verify {

/// Recovery times after the deaths of one role.
struct RecoveryTimes {
  uint64_t count = 0;
  double median_ms = 0;
  double worst_ms = 0;
};
/// All 0 when there is none.
RecoveryTimes Summarise(std::vector<double> times_ms);

/// A process of a job, by the name of its node and the number of its start: a pid comes again.
struct ProcessName {
  std::string node;
  uint64_t start = 0;  // from 1; 0: not known
  friend auto operator<=>(const ProcessName&, const ProcessName&) = default;
};

/// A worker that was killed.
struct WorkerKill {
  uint64_t at_ns = 0;  // CLOCK_MONOTONIC, as in histories
  ProcessName process;
};

/// The time from the kill of a worker until another process is about to push the first minibatch of
/// the shard that the worker had begun but not finished. A worker without such a shard is left out.
/// Add histories process by process, in any order. A value, not thread-safe.
class WorkerRecoveries {
 public:
  void AddBegin(const ProcessName& process, const ShardMark& mark);
  void AddAttempt(const ProcessName& process, const Attempt& attempt);
  void AddFinish(const ProcessName& process, const ShardMark& mark);
  /// Milliseconds of each kill that shows.
  std::vector<double> Times(const std::vector<WorkerKill>& kills) const;

 private:
  struct Begun {
    uint64_t at_ns = 0;
    ProcessName process;
  };
  std::map<ProcessName, std::optional<ShardName>> open_;  // begun and not finished
  std::map<ShardName, std::vector<Begun>> attempts_;      // of every shard that was begun
};

}  // namespace muster::verify
