#pragma once

#include "master/core/master_core.h"
#include "tests/sim/env.h"

namespace muster::sim {

class SimMaster;

/// Replaces the thread of master/sources/topic: looks at the topic, one look after the other, and
/// publishes the offset up to which everything is COMMITTED. Retention may go up to that offset,
/// except where it hides more. Also plays the operator, who retries lost ranges after their records
/// are back.
class TopicWatch {
 public:
  TopicWatch(Env* env, ProcessRef process, SimMaster* master);
  /// The first look; the others follow. The process's master must serve.
  void Start() { Look(); }

 private:
  void Look();
  void RetryLost(MasterCore* core, StepTime at);
  void Tell(const StreamLook& look, bool hides);

  Env* const env_;
  const ProcessRef process_;
  SimMaster* const master_;
  Rng rng_;
  Rng losses_;
};

}  // namespace muster::sim
