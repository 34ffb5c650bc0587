#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/random.h"
#include "master/core/durable_state.h"
#include "tests/sim/machine/scheduler.h"

namespace muster::sim {

/// The master's journal: a batch is durable some virtual time after it was written, as a whole. If
/// its writer dies before that, the next start finds all of the batch or nothing.
class SimJournal {
 public:
  /// Gets all mutations when they become durable, each once.
  using OnDurable =
      std::function<void(const std::vector<Mutation>& mutations, const DurableState& state)>;
  struct Options {
    nanoseconds sync_max{0};
    /// Records are encoded and decoded on their way.
    bool codec = false;
  };
  SimJournal(uint64_t seed, Scheduler* scheduler, Options options, OnDurable on_durable)
      : seed_(seed), scheduler_(scheduler), options_(options), on_durable_(std::move(on_durable)) {}

  const DurableState& state() const { return state_; }
  /// One batch at a time. `done` is called in the process when it is synced, or has failed.
  void Write(const ProcessRef& process, std::vector<Mutation> mutations,
             std::function<void(absl::Status)> done);
  /// True if no batch is being written.
  bool idle() const { return !pending_.has_value(); }
  /// The writer has died. Returns whether a batch was in progress, and was found after all.
  enum class Found { kNothing, kLost, kFound };
  Found WriterDied();
  /// The next write fails; the next start may find it or not.
  void FailNext() { fail_next_ = true; }
  /// `strike` comes in the middle of the next write.
  void AimAtNext(std::function<void()> strike) { strike_ = std::move(strike); }
  void set_sync_max(nanoseconds max) { options_.sync_max = max; }

 private:
  void Keep();

  const uint64_t seed_;
  /// Of the process that writes.
  Rng rng_{0};
  uint64_t writer_ = 0;
  Scheduler* const scheduler_;
  Options options_;
  const OnDurable on_durable_;
  DurableState state_;
  std::optional<std::vector<Mutation>> pending_;
  bool fail_next_ = false;
  std::function<void()> strike_;
};

}  // namespace muster::sim
