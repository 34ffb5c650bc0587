#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/env.h"
#include "tests/sim/machine/network.h"
#include "tests/sim/planted/planted_bug.h"
#include "tests/sim/sim_worker.h"
#include "tests/sim/supervisor.h"

namespace muster::sim {

enum class FaultKind : uint8_t {
  kKill,
  kPause,
  kReplace,   // a false death verdict
  kLose,      // a server loses a partition
  kCut,       // one link, one way
  kSlowDisk,  // snapshots and journal
  kFullDisk,
  kJournalError,
  kKillInSync,  // the master, in the middle of a write of the journal
  kHang,        // a trainer's loop, for good
  kDrain,
  kRestart,
  kPowerLoss,
  kForget,      // a worker, until its shards are COMMITTED and forgotten (forgotten_worker.h)
  kDrainNode,   // a worker or a server, which starts again afterwards
  kBrokers,     // of the topic, which cannot be reached
  kTwoMasters,  // Supervisor::SplitMaster
};

/// One event of a seed's plan.
struct Fault {
  nanoseconds at{0};  // since the start
  FaultKind kind = FaultKind::kKill;
  Role role = Role::kWorker;
  uint32_t index = 0;
  nanoseconds duration{0};
  uint32_t other = 0;  // kCut: the other end. kTwoMasters: a bit for each node that reaches the old
  nanoseconds pause{0};    // kTwoMasters: of the old one
  bool restarted = false;  // kTwoMasters: the old one starts again at the same time
};
std::string ToString(const Fault& fault);

/// All faults of a seed, drawn beforehand, so that the minimiser can remove one without changing
/// the others.
struct FaultPlan {
  nanoseconds end{0};         // all faults end
  std::vector<Fault> faults;  // by time
  NetworkFaults network;
  TrainerFaults trainers;
  uint64_t torn_reads = 0;  // in 1/1000
};

/// Every seed that this divides is a job with a synchronous group.
inline constexpr uint64_t kGroupEvery = 4;
/// A weakening of the simulation itself is in force in every seed.
Knobs DrawKnobs(uint64_t seed, Weakening weakening = Weakening::kNone);
FaultPlan DrawFaults(uint64_t seed, const Knobs& knobs);
/// Parts of a plan that can be removed as a whole, besides single faults.
inline constexpr std::string_view kPlanParts[] = {"network", "trainers", "torn reads"};
void TakeOut(std::string_view part, FaultPlan* plan);

}  // namespace muster::sim
