#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scaler/model/job_view.h"
#include "scaler/model/model.h"

namespace muster::scaler {

/// Measures the outcomes of decisions. Each decision that was carried out, and each action of a
/// person, gets one outcome event with a verdict if it can be measured.
///
/// - A restart has helped if the node trains or serves again, and continues for a while.
/// - An action for speed is judged by the job's rate before and after it. Both rates are taken over
///   undisturbed training.
/// - More memory has helped if the node uses more than its former limit. Less memory, or a first
///   limit, has helped if the node manages with it.
/// - A drain or an end has helped when it has happened.
/// - Some actions take effect at once and show in no figure: a pause of a policy, stacks, shards
///   that are tried again. They have an outcome only if they failed.
///
/// In all other cases the verdict is no-change, worse, or unknown, and one sentence says why.
///
/// Deterministic; a value with one owner; not thread-safe.
class OutcomeWatch {
 public:
  struct Options {
    /// The rates before and after an action are measured over this time. It is long compared with
    /// one minibatch or snapshot.
    std::chrono::seconds rate_window{10};
    /// The measurement begins this long after the effect, because caches are cold and connections
    /// are new at first. A node must also continue for this long after a restart.
    std::chrono::seconds settle{10};
    /// After this time, no order of a dead scaler is in progress any more: a process that was told
    /// to end has ended.
    std::chrono::seconds adopt_grace{15};
    /// After this time, a call to the master has been answered or given up.
    std::chrono::seconds answer_max{30};
    /// The longest wait for an effect.
    std::chrono::seconds effect_max{120};
    /// The longest wait for undisturbed training after the effect.
    std::chrono::seconds measure_max{120};
    /// How long usage is watched after a memory limit was changed.
    std::chrono::seconds memory_watch{60};
    /// A smaller difference in the rate counts as no change. Two windows of a steady job can differ
    /// as much.
    double change_min = 0.05;
  };
  OutcomeWatch() : OutcomeWatch(Options{}) {}
  explicit OutcomeWatch(const Options& options) : options_(options) {}

  /// `event`, a decision or an action of a person, was carried out at `at`. It has its id. Its
  /// evidence has the figures from before the action: kStartFigure and kRateFigure
  /// (event_drafts.h).
  void Open(const rest::Event& event, TimePoint at);
  /// The same for a decision of a dead scaler, which may not have carried it out. This scaler began
  /// at `now`.
  void Adopt(const rest::Event& event, TimePoint at, TimePoint now);
  /// If false, the event has an outcome only if it fails.
  static bool IsMeasured(const rest::Event& event) { return !IsSilent(WhatOf(event)); }
  /// Call it once a second. Returns the outcomes that are known now, oldest decision first. They
  /// have no id yet.
  std::vector<rest::Event> Step(const JobView& view);
  /// The order was not carried out. Returns its outcome; none if nobody waits for its outcome.
  std::optional<rest::Event> Fail(uint64_t event_id, const std::string& why);
  /// Records trained per second over the newest window. None unless the job trained all that time.
  std::optional<double> Rate() const;

  size_t open() const { return watches_.size(); }

 private:
  enum class What : uint8_t {
    kBack,
    kRate,
    kMemory,
    kLeave,
    kJobDrains,
    kJobEnds,
    kAtOnce,   // its effect is immediate and cannot be measured
    kByMaster  // cannot be measured; the master is called after the event
  };
  static bool IsSilent(What what) { return what == What::kAtOnce || what == What::kByMaster; }
  struct Watch {
    rest::Event event;
    What what = What::kAtOnce;
    TimePoint at;
    uint32_t start = 0;  // of its target, when it was decided
    Resources before;
    Resources after;
    std::optional<double> rate_before;
    std::optional<TimePoint> adopted_at;
    std::optional<TimePoint> done_at;  // when the effect was there
    uint64_t memory_most = 0;          // used since then
    uint64_t overlapped_by = 0;        // an event that shows in the same figures; 0: none
  };
  struct Reading {
    TimePoint at;
    uint64_t records = 0;
    bool training = false;
  };
  using Outcome = std::optional<rest::Event>;

  static What WhatOf(const rest::Event& event);
  /// True if the effect can be seen, or at least that it is in progress.
  static bool HasBegun(const JobView& view, const Watch& watch);
  static bool HasEffect(const JobView& view, const Watch& watch);
  static rest::Event MakeOutcome(const Watch& watch, const std::string& verdict,
                                 std::string because);
  Outcome Look(const JobView& view, Watch* watch) const;
  Outcome AfterEffect(const JobView& view, Watch* watch) const;
  /// The target ended, but not because of a problem.
  Outcome AtGoodEnd(const JobView& view, const Watch& watch, const NodeEnd& end) const;
  Outcome AtJobsEnd(const JobView& view, const Watch& watch) const;
  Outcome JudgeDone(const JobView& view, const Watch& watch) const;
  Outcome JudgeRate(const JobView& view, const Watch& watch) const;
  Outcome JudgeMemory(const JobView& view, Watch* watch) const;
  Outcome JudgeUsage(const Watch& watch, const std::string& how_long) const;
  void AddRates(const Watch& watch, std::optional<double> rate, rest::Event* outcome) const;
  /// The rate over the newest window. None unless the whole window lies after `from` and was
  /// training.
  std::optional<double> RateSince(TimePoint from) const;

  Options options_;
  std::map<uint64_t, Watch> watches_;  // by event
  std::deque<Reading> readings_;       // of the newest window
};

}  // namespace muster::scaler
