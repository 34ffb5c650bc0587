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

/// Training with local steps (muster/local_sgd.h): which weights a member trains on, what it gives
/// to the sums of a step, and how these change the weights that all members share.
///
/// Each piece of the weights exists several times: the *working* copy, which the trainer changes in
/// its loop; the *shared* one, which is state of the group; the *moments* of the outer optimizer,
/// which are state, too. With `fragments` above 1 or `mixing` above 0, a member also has weights of
/// its own, which go on over several steps: where its working copy stood (*kept*), and from where
/// its changes count that are not in any sum yet (*base*).
///
/// Sums go through *slots*: fragment f has its piece of slot j in bucket j, so all fragments use
/// the same buckets. Pure. Not thread-safe.
class OuterLoop {
 public:
  struct Options {
    OuterOptimizer optimizer;
    /// Step number u, counted from 0, synchronises the pieces p with p % fragments == u %
    /// fragments.
    uint32_t fragments = 1;
    /// The part of its own weights that a member keeps when they are synchronised: from 0 to
    /// below 1.
    float mixing = 0;
    /// Above 0: changes are divided by this, and not by the members that have trained.
    uint32_t members = 0;
  };
  static constexpr uint32_t kMembersMax = 1024;
  static constexpr uint32_t kFragmentsMax = 1024;

  explicit OuterLoop(const Options& options) : options_(options) {}
  /// Everything that must be the same in all members: "Nesterov with rate 0.7, momentum 0.9, ...".
  std::string OptionsText() const;

  // ---- registering ----

  /// `working` stays where it is, and has the initial weights when Close is called.
  void AddWeights(std::string_view name, std::span<float> working);
  /// Values of which every step leaves the plain mean over the members.
  void AddMean(std::string_view name, std::span<float> working);
  /// The pieces are complete. kInvalidArgument: an option that cannot be used, a piece without
  /// elements, no weights, or fewer pieces of weights than fragments.
  absl::Status Close();

  struct State {
    std::string name;
    std::span<float> values;
  };
  /// The shared state; it stays where it is.
  std::vector<State> SharedState();
  std::span<int64_t> updates() { return updates_; }
  struct Slot {
    std::string name;
    uint64_t elements;
    /// The values are no small changes: they need the precision of float32.
    bool exact;
  };
  std::vector<Slot> Slots() const;

  // ---- a step ----

  /// A loop over minibatches to train on begins. A new run begins at the shared weights, or at this
  /// member's own if its last step was the newest of this lineage. The same run goes on.
  void BeginRun(LineageNumber lineage, StepRunNumber run);
  /// The working copies become the shared weights, until a run begins. What a run has changed in
  /// them is gone.
  void ShowShared();
  /// The working copies are of this run.
  bool Runs(StepRunNumber run) const { return run_ == run; }
  /// What this member gives to the bucket of a slot. Valid until the next call.
  std::span<const float> Contribution(uint32_t slot);
  /// What that is, by the trainer's name: "the change of the weights \"layer\"".
  std::string WhatIn(uint32_t slot);

  /// Whose changes are in the sums: only of others, or also what the current run has contributed.
  enum class Part : uint8_t { kOthers, kOwn };
  using SumOf = std::function<std::span<const float>(uint32_t slot)>;
  /// The step has happened: changes the shared state by the sums over `count` members. Then the
  /// working copies equal the shared weights.
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
  /// Slots of weights; behind them, each mean has one.
  size_t weight_slots() const {
    return (weights_.size() + options_.fragments - 1) / options_.fragments;
  }
  /// The piece of the current fragment in a slot of weights; null: it has none.
  Piece* InFragment(size_t slot);
  /// The own weights after a step that the current run has a part in.
  void KeepOwn();

  const Options options_;
  std::vector<Piece> weights_, means_;
  /// Updates of the shared state, and so steps that are no evaluations.
  std::array<int64_t, 1> updates_{};
  std::vector<float> scratch_;
  StepRunNumber run_ = 0;
  LineageNumber lineage_;
  /// Of which shared state the own weights are: its lineage and its updates.
  std::optional<std::pair<LineageNumber, int64_t>> own_;
};

}  // namespace muster::sdk
