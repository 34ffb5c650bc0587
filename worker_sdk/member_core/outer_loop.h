#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/words/types.h"
#include "worker_sdk/member_core/computed_share.h"
#include "worker_sdk/member_core/outer_optimizer.h"

namespace muster::sdk {

/// Training with local steps (muster/local_sgd.h): which weights a member trains on, what it
/// contributes to the sums of a step, and how the sums change the weights that all members share.
///
/// Each piece of the weights exists several times. The trainer changes the *working* copy in its
/// loop. The *shared* copy and the *moments* of the outer optimizer are state of the group. With
/// `fragments` above 1 or `mixing` above 0, a member also has weights of its own, which continue
/// over several steps: *kept* is the last value of its working copy, and *base* is the value from
/// which its changes count that are not in any sum yet.
///
/// Sums use *slots*. Fragment f has its piece of slot j in bucket j, so all fragments use the same
/// buckets. Pure. Not thread-safe.
class OuterLoop {
 public:
  struct Options {
    OuterOptimizer optimizer;
    /// Step number u, counted from 0, synchronises the pieces p for which p % fragments == u %
    /// fragments.
    uint32_t fragments = 1;
    /// The share of its own weights that a member keeps when they are synchronised, from 0 to below
    /// 1.
    float mixing = 0;
    /// If above 0, changes are divided by this number. Otherwise, by the number of members that
    /// have trained.
    uint32_t members = 0;
  };
  static constexpr uint32_t kMembersMax = 1024;
  static constexpr uint32_t kFragmentsMax = 1024;

  explicit OuterLoop(const Options& options) : options_(options) {}
  /// All options that must be the same in all members: "Nesterov with rate 0.7, momentum 0.9, ...".
  std::string OptionsText() const;

  // ---- registering ----

  /// `working` must stay where it is. It has the initial weights when Close is called.
  void AddWeights(std::string_view name, std::span<float> working);
  /// Adds values. Every step replaces them by their plain mean over the members.
  void AddMean(std::string_view name, std::span<float> working);
  /// Ends the registration. kInvalidArgument if an option cannot be used, a piece has no elements,
  /// there are no weights, or there are fewer pieces of weights than fragments.
  absl::Status Close();

  struct State {
    std::string name;
    std::span<float> values;
  };
  /// The shared state. It stays where it is.
  std::vector<State> SharedState();
  std::span<int64_t> updates() { return updates_; }
  struct Slot {
    std::string name;
    uint64_t elements;
    /// True if the values are not small changes, so that they need the precision of float32.
    bool exact;
  };
  std::vector<Slot> Slots() const;

  // ---- a step ----

  /// A training loop begins. A new run begins at the shared weights, or at this member's own
  /// weights if its last step was the newest of this lineage. A run that has begun continues.
  void BeginRun(LineageNumber lineage, StepRunNumber run);
  /// Sets the working copies to the shared weights, until a run begins. The changes of the run are
  /// lost.
  void ShowShared();
  /// True if the working copies belong to this run.
  bool Runs(StepRunNumber run) const { return run_ == run; }
  /// What this member contributes to the bucket of a slot. Valid until the next call.
  std::span<const float> Contribution(uint32_t slot);
  /// A description of that contribution with the trainer's name: "the change of the weights
  /// \"layer\"".
  std::string WhatIn(uint32_t slot);

  /// Whose changes are in the sums: only those of others, or also those of the current run.
  enum class Part : uint8_t { kOthers, kOwn };
  using SumOf = std::function<std::span<const float>(uint32_t slot)>;
  /// The step has happened. Changes the shared state by the sums over `count` members, and then
  /// sets the working copies to the shared weights.
  void Apply(Part part, float count, const SumOf& sum);

 private:
  struct Piece {
    std::string name;
    std::span<float> working;
    std::vector<float> shared, first, second;
    std::vector<float> kept, base;
  };

  bool HasOwnWeights() const { return options_.fragments > 1 || options_.mixing > 0; }
  uint64_t fragment() const { return static_cast<uint64_t>(updates_[0]) % options_.fragments; }
  /// The number of slots for weights. After them, each mean has a slot.
  size_t weight_slots() const {
    return (weights_.size() + options_.fragments - 1) / options_.fragments;
  }
  /// The piece of the current fragment in a slot of weights; null if there is none.
  Piece* InFragment(size_t slot);
  /// Updates the own weights after a step to which the current run has contributed.
  void KeepOwn();

  const Options options_;
  std::vector<Piece> weights_, means_;
  /// The number of updates of the shared state. Evaluations do not count.
  std::array<int64_t, 1> updates_{};
  std::vector<float> scratch_;
  StepRunNumber run_ = 0;
  LineageNumber lineage_;
  /// The lineage and the update count of the shared state to which the own weights belong.
  std::optional<std::pair<LineageNumber, int64_t>> own_;
};

}  // namespace muster::sdk
