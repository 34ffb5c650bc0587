#pragma once

#include <cstdint>

#include "base/words/types.h"
#include "tests/sim/machine/scheduler.h"

namespace muster::sim {

/// How trainers behave; chances in 1/1000 per minibatch or shard.
struct TrainerFaults {
  uint64_t fails = 0;       // a shard, with a reason
  uint64_t crashes = 0;     // the process, with SIGSEGV
  uint64_t hands_back = 0;  // a shard
  uint64_t abandons = 0;    // the process leaves in the middle of its loop
};

/// A trainer's process, as its supervisor sees it.
class WorkerProcess {
 public:
  /// What the slot file tells the supervisor, after the process's end too.
  struct SlotFile {
    uint64_t incarnation = 0;
    LeaseToken token;
    ShardId shard;
    uint32_t minibatches = 0;
  };

  virtual ~WorkerProcess() = default;
  virtual void Start() = 0;
  virtual const ProcessRef& process() const = 0;
  /// One loop stands still for good.
  virtual void Hang() = 0;
  virtual const SlotFile& slot_file() const = 0;
  virtual bool told_to_stop() const = 0;
};

}  // namespace muster::sim
