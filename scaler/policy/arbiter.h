#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scaler/policy/policy.h"
#include "scaler/policy/room.h"

namespace muster::scaler {

/// What became of a proposal.
struct Decision {
  enum class Verdict : uint8_t { kAct, kDryRun, kRefused };
  Verdict verdict = Verdict::kAct;
  /// `after` is what is to be done: what was proposed, cut to what budget and machine leave.
  Proposal proposal;
  TimePoint at;
  /// Why nothing is done, or why less than proposed; empty otherwise. One sentence.
  std::string remark;
};

/// Between what policies want and what is done: one open action per node, a pause after each, a
/// budget of interventions, the limits of job and machine; policies that are paused, and dry runs.
///
/// Repairs (what is down is started again, a job that cannot go on is stopped) wait for nothing but
/// a paused policy or a dry run: the node's keeper then starts it again as it was. A refusal is
/// told once, and again when its reason changes or after `refusal_repeat`; a proposal that repeats
/// the action in progress is passed over.
///
/// A value with one owner; not thread-safe. Pauses, cooldowns and what was granted outlive the
/// process only if the owner keeps them; open actions start again, as the policies' windows do.
class Arbiter {
 public:
  struct Options {
    /// From one action of a policy on a target to the next of the same kind: its effect must be
    /// measurable before more is done.
    std::chrono::seconds cooldown{60};
    /// Of single policies. Raising a memory limit in place costs nothing, and growth may be steep.
    std::map<std::string, std::chrono::seconds> cooldowns = {
        {"predicted-out-of-memory", std::chrono::seconds(10)}};
    /// An action on a node that has not come to its end after so long no longer keeps others away.
    std::chrono::seconds open_max{120};
    /// Of the whole job, repairs aside: a scaler that does more has misunderstood something.
    uint32_t interventions_per_hour = 12;
    std::chrono::seconds refusal_repeat{600};
    /// Decide, tell, do nothing.
    bool dry_run = false;
  };
  Arbiter() : Arbiter(Options{}) {}
  explicit Arbiter(const Options& options) : options_(options) {}

  /// Decisions on `proposals`, the weightiest first (stop, repairs, then interventions in the order
  /// given). `view` is the one that the policies saw.
  std::vector<Decision> Decide(std::vector<Proposal> proposals, const JobView& view);

  /// What an arbiter before this one granted at `at`, oldest first: cooldowns and the budget of
  /// interventions go on. Of the proposal, policy, target, action and kind count.
  void Adopt(const Proposal& proposal, TimePoint at);

  /// By name. A paused policy still watches; what it proposes is refused.
  void Pause(const std::string& policy) { paused_.insert(policy); }
  void Resume(const std::string& policy) { paused_.erase(policy); }
  const std::set<std::string>& paused() const { return paused_; }

 private:
  struct Open {
    Proposal proposal;
    uint32_t start = 0;  // of the node, when it was decided
    TimePoint at;
  };
  /// Nothing when it may be done; else why not. May cut `proposal->after`, saying so in `remark`.
  std::optional<std::string> Refusal(const JobView& view, Proposal* proposal, std::string* remark);
  std::optional<std::string> OverRate(const JobView& view, const Proposal& proposal) const;
  std::optional<std::string> FitLimits(const JobView& view, Proposal* proposal,
                                       std::string* remark) const;
  std::optional<std::string> FitWorkers(const JobView& view, Proposal* proposal,
                                        std::string* remark) const;
  void Grant(const JobView& view, const Proposal& proposal);
  void CloseWhatIsDone(const JobView& view);
  bool ToldLately(const Proposal& proposal, const std::string& refusal, TimePoint now);

  using Key = std::tuple<std::string, std::string, Action>;
  static Key KeyOf(const Proposal& proposal) {
    return {proposal.policy, proposal.target, proposal.action};
  }

  Options options_;
  std::set<std::string> paused_;
  bool stopping_ = false;
  std::map<Key, TimePoint> last_;
  std::map<std::string, Open> open_;  // by target
  std::deque<TimePoint> interventions_;
  std::map<Key, std::pair<std::string, TimePoint>> told_;
  PendingLimits pending_;  // of the step in progress
};

}  // namespace muster::scaler
