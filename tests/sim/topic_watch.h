#pragma once

#include "master/core/master_core.h"
#include "tests/sim/env.h"

namespace muster::sim {

/// What master/sources/topic does with a thread: looks at the topic, one look after the other, and
/// makes known how far everything is COMMITTED, which is as far as retention may go, but where it
/// hides more. And the operator who has lost ranges tried again once their records are back.
class TopicWatch {
 public:
  TopicWatch(Env* env, ProcessRef process);
  /// The first look; the others follow. The process's master must serve.
  void Start() { Look(); }

 private:
  void Look();
  void RetryLost(MasterCore* core, StepTime at);
  void Tell(const StreamLook& look, bool hides);

  Env* const env_;
  const ProcessRef process_;
  Rng rng_;
  Rng losses_;
};

}  // namespace muster::sim
