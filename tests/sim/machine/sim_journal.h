#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/random.h"
#include "master/core/durable_state.h"
#include "master/journal/generations.h"
#include "tests/sim/machine/scheduler.h"

namespace muster::sim {

/// The master's journal, in generations (docs/protocol.md, section 11). A batch is durable some
/// virtual time after it was written, as a whole. If its writer dies before that, the next start
/// finds all of the batch or nothing. Machines do not see each other's locks.
class SimJournal {
 public:
  /// Gets all mutations when they become durable in the newest complete generation, each once.
  using OnDurable =
      std::function<void(const std::vector<Mutation>& mutations, const DurableState& state)>;
  struct Options {
    nanoseconds sync_max{0};
    /// Records are encoded and decoded on their way.
    bool codec = false;
  };
  SimJournal(uint64_t seed, Scheduler* scheduler, Options options, OnDurable on_durable)
      : seed_(seed), scheduler_(scheduler), options_(options), on_durable_(std::move(on_durable)) {}

  // A start on `machine`, step by step; no other process of this machine is a master.
  StartChoice Choose(const std::string& machine) const;
  /// The first step of a start that adopts or takes over.
  void Make(const StartChoice& choice, const std::string& machine);
  /// Closes all generations before this one.
  void CloseBefore(uint64_t number);
  /// Copies the newest complete generation into this one, which is then complete.
  void Copy(uint64_t number);
  /// A look at the fence.
  bool IsOpen(uint64_t number) const { return !generations_.at(number).facts.closed; }

  /// Of the newest complete generation.
  const DurableState& state() const;
  const DurableState& state(uint64_t number) const { return generations_.at(number).state; }
  /// One batch at a time. `done` is called in the process when it is synced, or has failed.
  void Write(const ProcessRef& process, uint64_t number, std::vector<Mutation> mutations,
             std::function<void(absl::Status)> done);
  /// True if no batch is being written to this generation.
  bool idle(uint64_t number) const { return !generations_.at(number).pending.has_value(); }
  /// The writer has died (null: all). Returns whether a batch was in progress, and was found after
  /// all.
  enum class Found { kNothing, kLost, kFound };
  Found WriterDied(const ProcessRef& process);
  /// The next write fails; the next start may find it or not.
  void FailNext() { fail_next_ = true; }
  /// `strike` comes in the middle of the next write.
  void AimAtNext(std::function<void()> strike) { strike_ = std::move(strike); }
  void set_sync_max(nanoseconds max) { options_.sync_max = max; }

 private:
  struct Part {
    Generation facts;
    DurableState state;
    std::optional<std::vector<Mutation>> pending;
    /// Of the process that writes.
    Rng rng{0};
    uint64_t writer = 0;
  };
  const Part* NewestPart() const;
  void Keep(uint64_t number);
  Found Drop(uint64_t number);

  const uint64_t seed_;
  Scheduler* const scheduler_;
  Options options_;
  const OnDurable on_durable_;
  const DurableState nothing_;
  std::map<uint64_t, Part> generations_;
  bool fail_next_ = false;
  std::function<void()> strike_;
};

}  // namespace muster::sim
