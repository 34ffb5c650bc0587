#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "verify/fault_plan.h"
#include "verify/workload/history.h"

namespace muster::verify {

/// How long deaths of one role were felt.
struct RecoveryTimes {
  uint64_t count = 0;
  double median_ms = 0;
  double worst_ms = 0;
};
/// All 0 when there is none.
RecoveryTimes Summarise(std::vector<double> times_ms);

/// A worker that was killed.
struct WorkerKill {
  uint64_t at_ns = 0;  // CLOCK_MONOTONIC, as in histories
  int64_t pid = 0;
};

/// From the kill of a worker to the first minibatch, about to be pushed by another process, of the
/// shard that it had begun and not finished. A worker that had none in work shows nothing, and is
/// left out. Histories are fed process by process, in any order; a value, not thread-safe.
class WorkerRecoveries {
 public:
  void AddBegin(int64_t pid, const ShardMark& mark);
  void AddAttempt(int64_t pid, const Attempt& attempt);
  void AddFinish(int64_t pid, const ShardMark& mark);
  /// Milliseconds of each kill that shows.
  std::vector<double> Times(const std::vector<WorkerKill>& kills) const;

 private:
  struct Begun {
    uint64_t at_ns = 0;
    int64_t pid = 0;
  };
  std::map<int64_t, std::optional<ShardName>> open_;  // by pid: begun and not finished
  std::map<ShardName, std::vector<Begun>> attempts_;  // of every shard that was begun
};

}  // namespace muster::verify
