#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verify/checker.h"
#include "verify/recovery.h"
#include "verify/workload/group_state.h"
#include "verify/workload/history.h"

namespace muster::verify {

/// The steps that all members of a run say that they have applied. A value; not thread-safe.
class StepLog {
 public:
  /// Process by process in any order, and of each process in its order.
  void Add(const ProcessName& process, const AppliedStep& applied);

  /// The newest step that a process has applied.
  uint64_t newest() const { return newest_; }
  /// The last step that a process has applied; 0: none.
  uint64_t LastOf(const ProcessName& process) const;
  const std::vector<std::pair<ProcessName, AppliedStep>>& all() const { return applied_; }
  /// Milliseconds from the kill of a member until the group has applied a step that nobody had
  /// applied before. A kill after the last step is left out.
  std::vector<double> Recoveries(const std::vector<WorkerKill>& kills) const;

 private:
  std::vector<std::pair<ProcessName, AppliedStep>> applied_;
  std::map<ProcessName, uint64_t> last_;
  uint64_t newest_ = 0;
};

/// The state of a process at the end of its job.
struct FinalState {
  ProcessName process;
  GroupState state;
};

/// What a run of a group left behind.
struct GroupRun {
  StepLog steps;
  std::vector<FinalState> finals;
};

struct GroupVerdict {
  uint64_t steps = 0;              // of the job
  uint64_t compared = 0;           // states after a step, of all members
  uint64_t different = 0;          // of them: not what the undisturbed run had after the step
  uint64_t in_no_step = 0;         // record trainings
  uint64_t in_two_steps = 0;       // record trainings, in two steps or more
  uint32_t members = 0;            // that had the state after the last step
  uint32_t members_different = 0;  // of them: its bits are not those of the undisturbed run
  /// What is wrong, and where; at most kSamplesMax of each kind.
  std::vector<std::string> wrong;

  static constexpr size_t kSamplesMax = 10;
  bool ok() const;
};

/// Compares a run with one of the same job without faults, and its records with the input. A
/// process that was not at the last step when its job ended is compared at its own last step. Pure.
GroupVerdict CheckGroup(const Workload& workload, const GroupRun& undisturbed,
                        const GroupRun& disturbed);

/// The state after the last step, of any process; none: no process had it. If they differ, the one
/// that is the least like that of the undisturbed run.
const GroupState* FinalStateOf(const GroupRun& undisturbed, const GroupRun& disturbed);

}  // namespace muster::verify
