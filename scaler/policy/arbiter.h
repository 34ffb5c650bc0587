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

/// The decision on a proposal.
struct Decision {
  enum class Verdict : uint8_t { kAct, kDryRun, kRefused };
  Verdict verdict = Verdict::kAct;
  /// `after` is the order: the proposal, reduced to the room in the budget and the machine.
  Proposal proposal;
  TimePoint at;
  /// Why nothing is done, or why less than proposed; empty otherwise. One sentence.
  std::string remark;
};

/// Decides which proposals of policies are carried out. It keeps to one open action per node, a
/// pause after each, a budget of interventions, the limits of job and machine, paused policies, and
/// dry runs.
///
/// Only a paused policy or a dry run stops repairs (a restart of a node that is down, or the end of
/// a job that cannot continue); the node's keeper then restarts the node unchanged. A refusal is
/// reported once, and again if its reason changes or after `refusal_repeat`. A proposal that
/// repeats the action in progress is skipped.
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
    /// For the whole job, without repairs. A scaler that wants to do more has misunderstood
    /// something.
    uint32_t interventions_per_hour = 12;
    std::chrono::seconds refusal_repeat{600};
    /// How long a policy whose action made things worse does no more: it has misjudged the job.
    std::chrono::seconds worse_hold{3600};
    /// Dry run: decides and records, but does nothing.
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

  /// What `policy` did was measured at `at`, and made things worse: its interventions are refused
  /// for `worse_hold`.
  void HoldBack(const std::string& policy, TimePoint at);

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
  /// None if it may be carried out; otherwise the reason. May reduce `proposal->after`, and then
  /// says so in `remark`.
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
  std::map<std::string, TimePoint> worse_;  // by policy
  std::map<std::string, Open> open_;        // by target
  std::deque<TimePoint> interventions_;
  std::map<Key, std::pair<std::string, TimePoint>> told_;
  PendingLimits pending_;  // of the step in progress
};

}  // namespace muster::scaler
