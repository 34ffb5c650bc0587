#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "master/core/master_core.h"
#include "tests/sim/env.h"
#include "tests/sim/sim_master.h"
#include "tests/sim/sim_server.h"
#include "tests/sim/sim_worker.h"

namespace muster::sim {

enum class Role : uint8_t { kMaster, kServer, kWorker };

/// Replaces `muster run` and the scaler: starts every node, restarts nodes that end, reports that
/// to the master, kills nodes that the master calls lost, and runs the job again if it did not end
/// well.
class Supervisor {
 public:
  Supervisor(Env* env, const TrainerFaults& trainers);

  /// Everything is started, with a run id of its own.
  void StartRun();
  /// Kills everything with SIGKILL, and runs the job again.
  enum class Power { kStays, kLost };
  void RestartRun(Power power);
  /// SIGKILL; false if there is no process.
  bool Kill(Role role, uint32_t index);
  bool Pause(Role role, uint32_t index, nanoseconds duration);
  /// Treats a living process as dead: starts another one beside it.
  bool Replace(Role role, uint32_t index);
  /// The master's machine is lost for its slot, and a master starts on another one, from the same
  /// storage. The old one lives on; the callers in `split.reached_by` still reach it.
  struct MasterSplit {
    std::set<Endpoint> reached_by;
    nanoseconds duration{0};
    /// How long the old one stands still first.
    nanoseconds pause{0};
    /// The old one starts again on its machine at the same time.
    bool restarted = false;
  };
  bool SplitMaster(const MasterSplit& split);
  void LosePartition(uint32_t server);
  void HangTrainer(uint32_t index);
  void Drain();
  /// Drains one node, whatever happens to the master meanwhile; then it starts again.
  void DrainNode(Role role, uint32_t index);
  /// All stopped processes continue soon.
  void Resume(nanoseconds within);
  void ResumeWorker(uint32_t index, nanoseconds within);
  /// For this long, this worker is not killed for being lost, because its node cannot be reached.
  void Spare(uint32_t worker, nanoseconds duration);

  /// The process in a slot, dead or alive; null before the first.
  const ProcessRef& ProcessOf(Role role, uint32_t index) { return SlotOf(role, index).process; }
  /// Of the worker process in the slot; 0 when there is none.
  uint64_t IncarnationOf(uint32_t worker);
  uint64_t crashes() const { return crashes_; }
  uint32_t IndexBound(Role role) const;

 private:
  struct Slot {
    Role role = Role::kMaster;
    uint32_t index = 0;
    ProcessRef process;
    WorkerProcess* worker = nullptr;
    uint32_t starts = 0;     // in this run
    uint32_t processes = 0;  // in all runs
    /// Of the process; everything that is drawn for it, but by the process itself.
    Rng rng{0};
    bool over = false;  // it has done its part in this run
    TimePoint spared_until{};
    ProcessRef drained;  // by us: another one is to follow
  };
  Slot& SlotOf(Role role, uint32_t index);
  std::string NameOf(const Slot& slot) const;
  void Start(Slot* slot);
  void StartMaster(ProcessRef process);
  void AskDrain(Slot* slot, const ProcessRef& process);
  void Restart(Slot* slot);
  static void ResumeAt(TimePoint at, const ProcessRef& process);
  void Exited(const ProcessRef& process, const ProcessEnd& end);
  void Ended(Slot* slot, const ProcessEnd& end);
  void TellNext();
  void Poll();
  void KillLost();
  bool Terminal() const;

  Env* const env_;
  const TrainerFaults trainers_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<SimMaster>> masters_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  ProcessRef self_;  // of this run
  uint64_t runs_ = 0;
  uint64_t machine_ = 0;  // of the master
  uint64_t crashes_ = 0;
  bool restarting_ = false;
  bool retry_failed_ = false;
  bool telling_ = false;
  std::deque<NodeReport> reports_;
};

}  // namespace muster::sim
