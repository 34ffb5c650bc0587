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
  /// `after` is what the order says: the proposed value, cut to what budget and machine have room
  /// for.
  Proposal proposal;
  TimePoint at;
  /// One sentence that says why nothing is done, or why less than proposed. Otherwise empty.
  std::string remark;
};

/// Decides which proposals of policies are carried out. It enforces one open action per node, a
/// pause after each action, a budget of interventions, the limits of job and machine, paused
/// policies, and dry runs.
///
/// Repairs are the restart of a node that is down, and the end of a job that cannot continue. Only
/// a pause of the policy or a dry run stops them. The node's keeper then restarts the node
/// unchanged. A refusal is reported once, and again if its reason changes or after
/// `refusal_repeat`. A proposal that repeats the action in progress is skipped.
///
/// A value with one owner; not thread-safe. Pauses, cooldowns and granted actions outlive the
/// process only if the owner keeps them. Open actions start again, as the policies' windows do.
class Arbiter {
 public:
  struct Options {
    /// The shortest time between two actions of the same kind that a policy takes on a target. The
    /// effect of the first must be measurable before more is done.
    std::chrono::seconds cooldown{60};
    /// Other cooldowns of single policies. A memory limit may be raised more often, because that
    /// costs nothing in place and growth may be steep.
    std::map<std::string, std::chrono::seconds> cooldowns = {
        {"predicted-out-of-memory", std::chrono::seconds(10)}};
    /// After this time, an action on a node no longer prevents others, even if it has not ended.
    std::chrono::seconds open_max{120};
    /// For the whole job, without repairs. If a scaler wants to do more, it has misunderstood
    /// something.
    uint32_t interventions_per_hour = 12;
    std::chrono::seconds refusal_repeat{600};
    /// How long interventions of a policy are refused after one of them made things worse. The
    /// policy has misjudged the job.
    std::chrono::seconds worse_hold{3600};
    /// If true, the arbiter decides and records, but grants no orders.
    bool dry_run = false;
  };
  Arbiter() : Arbiter(Options{}) {}
  explicit Arbiter(const Options& options) : options_(options) {}

  /// Decides on `proposals`, the most important first: a stop, then repairs, then interventions in
  /// the order given. `view` is the one that the policies saw.
  std::vector<Decision> Decide(std::vector<Proposal> proposals, const JobView& view);

  /// Takes over what an earlier arbiter granted at `at`, oldest first, so that cooldowns and the
  /// budget of interventions continue. Only policy, target, action and kind of the proposal matter.
  void Adopt(const Proposal& proposal, TimePoint at);

  /// An action of `policy` was measured at `at` and made things worse. Its interventions are
  /// refused for `worse_hold`.
  void HoldBack(const std::string& policy, TimePoint at);

  /// Pauses the policy of this name. It still watches, but its proposals are refused.
  void Pause(const std::string& policy) { paused_.insert(policy); }
  void Resume(const std::string& policy) { paused_.erase(policy); }
  const std::set<std::string>& paused() const { return paused_; }

 private:
  struct Open {
    Proposal proposal;
    uint32_t start = 0;  // of the node at the time of the decision
    TimePoint at;
  };
  /// None if the proposal may be carried out, otherwise the reason. It may reduce
  /// `proposal->after`; then `remark` says so.
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
