#include "tests/worker_sdk/member_core/small_group_master.h"

namespace muster::sdk {

std::string SmallGroupMaster::Act(const ProcessName& name, const GroupExchangeRequest& report,
                                  const Fabric& fabric) {
  TakeStripe(name, report);
  if (!IsMember(name) || report.attempt.value() != journal.attempt) return "";
  if (report.failed.has_value() || !report.suspected.empty()) {
    Regroup(journal.members);
    return "";
  }
  if (!report.state.has_value()) {
    RegroupWithout(name);
    return "";
  }
  bool counts = report.sum.has_value() && report.sum->attempt.value() == journal.attempt &&
                report.sum->step.value() == newest() + 1 &&
                report.state->lineage.value() == journal.lineage;
  if (!counts) return "";
  votes_[name] = *report.sum;
  return votes_.size() == journal.members.size() ? Commit(fabric) : "";
}

/// Every minibatch once, and all gradients of the newest state.
std::string SmallGroupMaster::ContentOfStep(const Fabric& fabric, StepContent* content) {
  uint64_t step = newest() + 1;
  uint64_t records = 0;
  for (const auto& [name, vote] : votes_) records += vote.metrics.records;
  if (records != kStepMinibatches) return "the votes have metrics of other minibatches";
  if (step == kEvaluatedStep) {
    *content = "evaluated";
    return "";
  }
  auto sum = fabric.find({journal.lineage, journal.attempt, step});
  if (sum == fabric.end()) return "a vote without a sum";
  std::vector<std::string> parts;
  for (const auto& [name, added] : sum->second) {
    parts.insert(parts.end(), added.begin(), added.end());
  }
  std::ranges::sort(parts);
  *content = std::to_string(journal.attempt);
  for (const std::string& part : parts) *content += " " + part;
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < kStepMinibatches; ++i) {
    expected.push_back(std::to_string(i) + "@" + std::to_string(newest()));
  }
  return parts == expected ? "" : "the sum of step " + std::to_string(step) + " is " + *content;
}

std::string SmallGroupMaster::Commit(const Fabric& fabric) {
  StepContent content;
  std::string wrong = ContentOfStep(fabric, &content);
  if (!wrong.empty()) return wrong;
  for (const auto& [name, vote] : votes_) {
    if (vote.digest != votes_.begin()->second.digest) return "digests differ";
  }
  uint64_t attempt = journal.attempt;
  journal.steps.push_back({attempt, content});
  if (bug_ == MasterBug::kTellFirst && attempt % 3 == 0) {
    for (const ProcessName& name : journal.members) {
      told_too_early.emplace_back(name, ReplyFor(name));
    }
    journal.steps.pop_back();
    return "";
  }
  votes_.clear();
  std::vector<ProcessName> members = journal.members;
  for (const auto& [name, report] : known_) {
    if (!IsMember(name) && Joins(report)) members.push_back(name);
  }
  shares_.clear();
  if (members.size() > journal.members.size()) Regroup(std::move(members));
  FreshShares();
  return "";
}

void SmallGroupMaster::Regroup(std::vector<ProcessName> members) {
  votes_.clear();
  if (bug_ != MasterBug::kSameAttempt) ++journal.attempt;
  journal.members = std::move(members);
  if (capture_.has_value() && !Captured()) capture_.reset(), stripes_.clear();
  FreshShares();
}

/// Survivors keep their shares, and the other minibatches go round.
void SmallGroupMaster::FreshShares() {
  std::erase_if(shares_, [&](const auto& share) { return !IsMember(share.first); });
  if (journal.members.empty()) return;
  std::set<uint32_t> kept;
  for (const auto& [name, share] : shares_) kept.insert(share.begin(), share.end());
  size_t next = journal.attempt;
  for (uint32_t i = 0; i < kStepMinibatches; ++i) {
    if (!kept.contains(i)) shares_[journal.members[next++ % journal.members.size()]].insert(i);
  }
}

bool SmallGroupMaster::HasLearner() const {
  return std::ranges::any_of(known_, [&](const auto& known) {
    const std::optional<StateLabel>& state = known.second.state;
    return !IsMember(known.first) || !state.has_value() || state->step.value() < newest();
  });
}

void SmallGroupMaster::AskForCapture(bool stored) {
  capture_ = StateCapture{StepNumber(newest()), AttemptNumber(journal.attempt),
                          static_cast<uint32_t>(journal.members.size()), stored ? "at/" : ""};
  capture_lineage_ = journal.lineage;
  stripes_.clear();
}

void SmallGroupMaster::TakeStripe(const ProcessName& name, const GroupExchangeRequest& report) {
  if (!capture_.has_value() || !report.capture.has_value()) return;
  const HeldCapture& held = *report.capture;
  StateLabel label{LineageNumber(capture_lineage_), capture_->step};
  if (held.label != label || held.stripes != capture_->stripes) return;
  stripes_[held.stripe.stripe] = {name, held.stripe};
  bool stored = Captured() && std::ranges::all_of(stripes_, [](const auto& stripe) {
                  return !stripe.second.second.object.empty();
                });
  if (stored && capture_lineage_ == journal.lineage && label.step.value() > journal.checkpoint) {
    journal.checkpoint = label.step.value();
    journal.checkpoint_lineage = journal.lineage;
  }
}

void SmallGroupMaster::Tick(bool wants_checkpoint) {
  if (known_.empty()) return;
  if (journal.lineage == 0) {
    std::vector<ProcessName> members;
    for (const auto& [name, report] : known_) {
      if (BaseIsInitial(report)) members.push_back(name);
    }
    if (members.empty()) return;
    journal.lineage = 1;
    Regroup(std::move(members));
    return;
  }
  if (journal.members.empty()) {
    std::vector<ProcessName> members;
    for (const auto& [name, report] : known_) {
      if (HoldsNewest(report)) members.push_back(name);
    }
    if (!members.empty()) Regroup(std::move(members));
    return;
  }
  // After a restart, the members have time to report.
  if (grace_ > 0) --grace_;
  for (const ProcessName& name : journal.members) {
    if (grace_ == 0 && !known_.contains(name)) return RegroupWithout(name);
  }
  bool at_end = newest() == kSteps;
  if (at_end && !wants_checkpoint) return;
  bool stale = !capture_.has_value() || capture_->step.value() < newest() ||
               capture_lineage_ != journal.lineage ||
               (!Captured() && capture_->attempt.value() != journal.attempt) ||
               (wants_checkpoint && capture_->object_prefix.empty());
  if (stale && (wants_checkpoint || HasLearner())) AskForCapture(wants_checkpoint);
}

/// To the newest state that a process holds, else to the checkpoint.
void SmallGroupMaster::Rollback() {
  uint64_t base = journal.checkpoint;
  for (const auto& [name, report] : known_) {
    if (!report.state.has_value() || report.state->lineage.value() != journal.lineage) continue;
    base = std::max(base, report.state->step.value());
  }
  journal.steps.resize(base);
  ++journal.lineage;
  journal.base = base;
  capture_.reset(), stripes_.clear(), shares_.clear();
  for (auto& [name, report] : known_) report.state.reset();
  Regroup({});
}

std::optional<StateSource> SmallGroupMaster::Source() const {
  StateSource source;
  bool captured = Captured() && capture_lineage_ == journal.lineage;
  if (captured) {
    source.label = {LineageNumber(capture_lineage_), capture_->step};
    for (const auto& [stripe, held] : stripes_) {
      source.stripes.push_back(held.second);
      source.holders.push_back({held.first.first, held.first.second, {}});
    }
    return source;
  }
  bool stored_base =
      journal.checkpoint > 0 && journal.checkpoint == newest() &&
      (journal.checkpoint == journal.base || journal.checkpoint_lineage == journal.lineage);
  if (!stored_base) return std::nullopt;
  source.label = {LineageNumber(journal.checkpoint_lineage), StepNumber(journal.checkpoint)};
  source.holders.emplace_back();
  return source;
}

GroupExchangeReply SmallGroupMaster::ReplyFor(const ProcessName& name) {
  GroupExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(journal.incarnation);
  auto known = known_.find(name);
  if (known != known_.end()) {
    reply.standing = journal.lineage == 0 ? GroupStanding::kWaiting
                     : IsMember(name)     ? GroupStanding::kMember
                                          : GroupStanding::kLearner;
    reply.lineage = LineageNumber(journal.lineage);
    reply.base = StepNumber(journal.base);
    reply.initial_is_base = journal.lineage > 0 && BaseIsInitial(known->second);
    reply.attempt = AttemptNumber(journal.attempt);
    reply.step = StepNumber(newest());
    uint64_t attempt = newest() > 0 ? journal.steps.back().attempt : 0;
    if (bug_ == MasterBug::kNamesNewestAttempt) attempt = journal.attempt;
    reply.step_attempt = AttemptNumber(attempt);
    if (known->second.attempt != reply.attempt) {
      for (const ProcessName& member : journal.members) {
        reply.members.push_back({member.first, member.second, {}});
      }
    }
    reply.keep_sums = HasLearner();
    if (!IsMember(name)) reply.source = Source();
    reply.capture = capture_;
    if (IsMember(name)) {
      auto rank = std::ranges::find(journal.members, name) - journal.members.begin();
      reply.rank = static_cast<uint32_t>(rank);
    }
    if (IsMember(name) && newest() < kSteps) {
      StepWork work{.step = StepNumber(newest() + 1)};
      work.shard.index = ShardIndex(newest());
      if (newest() + 1 == kEvaluatedStep) work.work.mode = DatasetMode::kEvaluate;
      for (uint32_t i : shares_[name]) work.share.spans.push_back({MinibatchIndex(i), 1});
      reply.work = std::move(work);
    }
  }
  if (finished()) reply.directive = JobDirective::kEnd;
  reply.news = told_[name].news;
  if (reply.news == 0 || reply != told_[name]) reply.news = ++news_;
  told_[name] = reply;
  return reply;
}

}  // namespace muster::sdk
