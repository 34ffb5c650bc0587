#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "tests/sim/env.h"
#include "tests/sim/supervisor.h"

namespace muster::sim {

/// The longest path to a part that arrives too late: a worker stands still in the middle of its
/// minibatches until others have trained its shards, those are COMMITTED and forgotten everywhere,
/// and partitions have been snapshotted twice since. Then all servers start again from what is
/// accepted, and the worker continues where it stood. A random plan almost never does all of this.
class ForgottenWorker {
 public:
  /// `rng` decides how much later than possible the servers are killed, and the worker continues.
  ForgottenWorker(Env* env, Supervisor* supervisor, Rng rng)
      : env_(env), supervisor_(supervisor), rng_(rng) {}

  /// The worker continues after `longest` at the latest, whatever was reached. To be called once.
  void Begin(uint32_t worker, nanoseconds longest);

 private:
  enum class Step : uint8_t { kForgetting, kFirstSnapshots, kSecondSnapshots };
  void LookAgain();
  void Look();
  bool StepIsOver() const;
  /// No earlier lease is in use, and every partition's owner knows that.
  bool Forgotten() const;
  void NoteSnapshots();
  /// It is the process that was stopped, and stands still.
  bool StillStands() const;
  void Strike();

  Env* const env_;
  Supervisor* const supervisor_;
  Rng rng_;
  uint32_t worker_ = 0;
  ProcessRef process_;
  /// The training shards that it held when it stopped.
  std::set<LeaseToken> held_;
  Step step_ = Step::kForgetting;
  TimePoint until_;
  /// The newest that was out when the worker stopped.
  LeaseToken token_;
  std::map<PartitionId, SnapshotNumber> accepted_;
};

}  // namespace muster::sim
