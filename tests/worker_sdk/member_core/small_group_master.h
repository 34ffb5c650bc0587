#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/messages/group_control.h"

namespace muster::sdk {

inline constexpr uint64_t kSteps = 6, kEvaluatedStep = 3;
inline constexpr uint32_t kStepMinibatches = 5;

/// A process: the worker's name and the incarnation.
using ProcessName = std::pair<std::string, uint64_t>;
/// Content of a step, as it is applied to the state.
using StepContent = std::string;
using ModelState = std::vector<StepContent>;

/// What members have added: by (lineage, attempt, step), by process, the content of each minibatch.
using Fabric = std::map<std::tuple<uint64_t, uint64_t, uint64_t>,
                        std::map<ProcessName, std::vector<std::string>>>;

enum class MasterBug { kNone, kTellFirst, kSameAttempt, kNamesNewestAttempt };

/// A master that keeps the rules of docs/protocol.md, section 12, as far as a member sees them.
/// What a crash keeps is in `journal`.
class SmallGroupMaster {
 public:
  struct Step {
    uint64_t attempt;
    StepContent content;
  };
  struct Journal {
    uint64_t incarnation = 0, lineage = 0, attempt = 0, base = 0;
    std::vector<ProcessName> members;
    std::vector<Step> steps;
    uint64_t checkpoint = 0, checkpoint_lineage = 0;
  };

  explicit SmallGroupMaster(MasterBug bug) : bug_(bug) { Restart(); }

  void Restart() {
    ++journal.incarnation;
    known_.clear(), votes_.clear(), shares_.clear(), told_.clear();
    capture_.reset(), stripes_.clear(), news_ = 0, grace_ = 20;
    if (journal.lineage > 0) Regroup(journal.members);
  }
  /// Empty: nothing is wrong.
  std::string OnRequest(const GroupExchangeRequest& request, const Fabric& fabric) {
    ProcessName name{request.worker, request.incarnation};
    for (auto it = known_.begin(); it != known_.end(); ++it) {
      if (it->first.first != name.first || it->first == name) continue;
      if (it->first.second > name.second) return "";
      Gone(it->first);
      break;
    }
    auto known = known_.find(name);
    if (known == known_.end() && !request.introduction.has_value()) return "";
    if (known != known_.end() && request.sequence <= known->second.sequence) return "";
    GroupExchangeRequest report = request;
    if (!report.introduction.has_value()) report.introduction = known->second.introduction;
    known_[name] = report;
    return Act(name, report, fabric);
  }
  /// A copy of the name, because callers have it from what this erases.
  void Gone(ProcessName name) {
    known_.erase(name);
    std::erase_if(stripes_, [&](const auto& s) { return s.second.first == name; });
    if (IsMember(name)) RegroupWithout(name);
  }
  void Tick(bool wants_checkpoint);
  bool waits_for_rollback() const {
    return journal.lineage > 0 && journal.members.empty() && !known_.empty();
  }
  void Rollback();
  GroupExchangeReply ReplyFor(const ProcessName& name);
  bool finished() const { return journal.checkpoint == kSteps; }
  uint64_t newest() const { return journal.steps.size(); }
  ModelState StateAfter(uint64_t step) const {
    ModelState state;
    for (uint64_t i = 0; i < step; ++i) state.push_back(journal.steps[i].content);
    return state;
  }
  std::vector<ProcessName> Known() const {
    std::vector<ProcessName> names;
    for (const auto& [name, report] : known_) names.push_back(name);
    return names;
  }
  /// A member is taken for dead although it lives.
  void Suspect(const ProcessName& name) { Gone(name); }
  /// The answer would say that the step has happened, but the crash comes before the journal has
  /// it.
  std::vector<std::pair<ProcessName, GroupExchangeReply>> told_too_early;

  Journal journal;

 private:
  bool IsMember(const ProcessName& name) const {
    return std::ranges::find(journal.members, name) != journal.members.end();
  }
  bool HoldsNewest(const GroupExchangeRequest& report) const {
    if (!report.state.has_value() || report.state->lineage.value() != journal.lineage) return false;
    uint64_t step = report.state->step.value();
    return step == newest() || (report.sum.has_value() && step + 1 == newest() &&
                                report.sum->step.value() == newest() &&
                                report.sum->attempt.value() == journal.steps.back().attempt);
  }
  bool Joins(const GroupExchangeRequest& report) const {
    return report.state.has_value() && report.state->lineage.value() == journal.lineage &&
           report.state->step.value() + 1 >= newest();
  }
  bool BaseIsInitial(const GroupExchangeRequest& report) const {
    return journal.base == 0 && report.introduction->initial_digest == 7;
  }
  std::string Act(const ProcessName& name, const GroupExchangeRequest& report,
                  const Fabric& fabric);
  std::string Commit(const Fabric& fabric);
  std::string ContentOfStep(const Fabric& fabric, StepContent* content);
  void Regroup(std::vector<ProcessName> members);
  void RegroupWithout(const ProcessName& name) {
    std::vector<ProcessName> rest = journal.members;
    std::erase(rest, name);
    Regroup(std::move(rest));
  }
  void FreshShares();
  void AskForCapture(bool stored);
  void TakeStripe(const ProcessName& name, const GroupExchangeRequest& report);
  bool Captured() const { return capture_.has_value() && stripes_.size() == capture_->stripes; }
  bool HasLearner() const;
  std::optional<StateSource> Source() const;

  MasterBug bug_;
  std::map<ProcessName, GroupExchangeRequest> known_;
  std::map<ProcessName, HeldSum> votes_;
  std::map<ProcessName, std::set<uint32_t>> shares_;
  std::optional<StateCapture> capture_;
  uint64_t capture_lineage_ = 0;
  std::map<uint32_t, std::pair<ProcessName, StateStripe>> stripes_;
  uint64_t news_ = 0;
  int grace_ = 0;
  std::map<ProcessName, GroupExchangeReply> told_;
};

}  // namespace muster::sdk
