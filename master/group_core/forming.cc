#include "master/group_core/forming.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace muster {
namespace {

std::string TextOf(const GroupTensor& tensor) {
  static constexpr std::string_view kTypes[] = {"float32", "float64",  "int64",
                                                "bytes",   "bfloat16", "fixed point"};
  const auto type = static_cast<size_t>(tensor.dtype);
  return fmt::format("{} '{}' of {} {}{}{}", tensor.summed ? "bucket" : "tensor",
                     Excerpt(tensor.name, 100), CountText(tensor.elements),
                     type < std::size(kTypes) ? kTypes[type] : "unknown",
                     tensor.fraction_bits == 0
                         ? ""
                         : fmt::format(" with {} bits after the point", tensor.fraction_bits),
                     tensor.backend.empty() ? "" : " added by " + Excerpt(tensor.backend, 100));
}

/// The first difference between two models.
std::string DifferenceText(const std::vector<GroupTensor>& own,
                           const std::vector<GroupTensor>& group) {
  for (size_t i = 0; i < std::min(own.size(), group.size()); ++i) {
    if (own[i] == group[i]) continue;
    return fmt::format("it has {} where the group has {}", TextOf(own[i]), TextOf(group[i]));
  }
  return fmt::format("it has {}, but the group {}",
                     CountText(own.size(), "tensor and bucket", "tensors and buckets"),
                     CountText(group.size()));
}

}  // namespace

Forming::Forming(GroupBooks* books, Membership* membership, StepInWork* work, Captures* captures)
    : books_(books), membership_(membership), work_(work), captures_(captures) {
  Begin(books_->lineage.attempt_members());
}

void Forming::Begin(std::vector<GroupProcess> awaited) {
  awaited_ = std::move(awaited);
  number_ = ++books_->news;
  enough_since_.reset();
  without_since_.reset();
}

bool Forming::HasHeard(const Process& process) const {
  return process.report.master_incarnation == books_->incarnation && process.report.news >= number_;
}

bool Forming::IsReady(const Process& process) const {
  const Lineage& lineage = books_->lineage;
  // Who leaves still has to store what it holds.
  const bool stays = !process.leaves() || lineage.step() > lineage.checkpoint_step();
  return process.usable() && stays && lineage.Holds(process.report);
}

bool Forming::IsSettled(const GroupProcess& awaited) const {
  if (books_->processes.IsDead(awaited)) return true;
  const auto& all = books_->processes.all();
  const auto found = all.find(awaited.worker);
  if (found == all.end()) return false;
  // Another process has its name.
  if (found->second.incarnation != awaited.incarnation || found->second.report.gone) return true;
  return IsReady(found->second) ||
         (found->second.introduction.has_value() && HasHeard(found->second));
}

bool Forming::AllSettled() const {
  return std::ranges::all_of(awaited_,
                             [this](const GroupProcess& awaited) { return IsSettled(awaited); });
}

template <typename Predicate>
bool Forming::All(Predicate predicate) const {
  return std::ranges::all_of(books_->processes.all(), [&](const auto& process) {
    return !process.second.refused.empty() || process.second.leaves() || predicate(process.second);
  });
}

std::vector<GroupProcess> Forming::Ready() const {
  std::vector<GroupProcess> ready;
  for (const auto& [worker, process] : books_->processes.all()) {
    if (ready.size() < books_->options.members_max && IsReady(process)) {
      ready.push_back({worker, process.incarnation});
    }
  }
  return ready;
}

bool Forming::AnyUsable() const {
  return std::ranges::any_of(books_->processes.all(),
                             [](const auto& process) { return process.second.usable(); });
}

bool Forming::AllWorkersAreHere() const {
  const auto here = std::ranges::count_if(books_->processes.all(), [](const auto& process) {
    return process.second.introduction.has_value();
  });
  const std::optional<uint32_t> workers = books_->data->Workers();
  return workers.has_value() && here >= *workers;
}

void Forming::Advance(TimePoint now) {
  if (!books_->lineage.begun()) return Found(false, now);
  if (std::vector<GroupProcess> ready = Ready(); !ready.empty()) return GoOn(ready, now);
  enough_since_.reset();
  LookBack(now);
}

void Forming::GoOn(std::vector<GroupProcess> ready, TimePoint now) {
  without_since_.reset();
  if (!enough_since_.has_value()) enough_since_ = now;
  const bool all_there =
      AllSettled() &&
      (!awaited_.empty() || All([this](const Process& process) { return IsReady(process); }));
  const bool waited = now - *enough_since_ >= books_->options.join_wait;
  if (!all_there && !waited && ready.size() < books_->options.members_max) {
    waits_ = fmt::format("the group forms: {} so far", CountText(ready.size(), "member"));
    return;
  }
  waits_.clear();
  membership_->NewAttempt(std::move(ready), "the group forms");
}

void Forming::LookBack(TimePoint now) {
  const Lineage& lineage = books_->lineage;
  waits_ = fmt::format("the group waits for a process that has the state after step {}",
                       lineage.step().value());
  if (!AnyUsable()) {
    without_since_.reset();
    return;
  }
  if (!without_since_.has_value()) without_since_ = now;
  const bool all_said = AllSettled() && All([this](const Process& process) {
                          return process.introduction.has_value() && HasHeard(process);
                        });
  if (!all_said && now - *without_since_ < books_->options.rollback_wait) return;
  // Rule 12.11.
  StepNumber best = lineage.checkpoint_step();
  for (const auto& [worker, process] : books_->processes.all()) {
    const std::optional<StateLabel>& state = process.report.state;
    if (!process.usable() || !state.has_value() || state->lineage != lineage.number()) continue;
    best = std::max(best, state->step);
  }
  if (best < lineage.step()) return RollBack(best);
  if (lineage.step() != StepNumber()) return;  // learners read the checkpoint
  // The first state is lost, too. Another one is as good.
  if (now - *without_since_ >= books_->options.rollback_wait) Found(true, now);
}

void Forming::RollBack(StepNumber base) {
  Lineage& lineage = books_->lineage;
  const StepNumber step = lineage.step();
  std::vector<GroupProcess> holders;
  for (const auto& [worker, process] : books_->processes.all()) {
    if (process.report.state == StateLabel{lineage.number(), base}) {
      holders.push_back({worker, process.incarnation});
    }
  }
  captures_->Drop();
  work_->End();
  books_->data->Undo(step.value() - base.value());
  lineage.RollBack(base);
  books_->data->Say(
      "group-rolled-back", "",
      fmt::format("nobody holds step {}: the group goes on from step {}, {} ({} again, lineage {})",
                  step.value(), base.value(),
                  !holders.empty() ? fmt::format("which {} has", holders.front().worker)
                  : base == lineage.checkpoint_step() && base != StepNumber() ? "which is stored"
                                                                              : "the initial state",
                  CountText(step.value() - base.value(), "step"), lineage.number().value()));
  Begin(std::move(holders));
}

std::vector<GroupProcess> Forming::LargestClass(bool again) const {
  std::vector<std::vector<GroupProcess>> classes;
  std::vector<const std::vector<GroupTensor>*> models;
  for (const auto& [worker, process] : books_->processes.all()) {
    if (!process.introduction.has_value() || process.evicted_until.has_value() ||
        process.leaves() || (!again && !process.refused.empty())) {
      continue;
    }
    size_t i = 0;
    while (i < models.size() && *models[i] != process.introduction->tensors) ++i;
    if (i == models.size()) {
      models.push_back(&process.introduction->tensors);
      classes.emplace_back();
    }
    classes[i].push_back({worker, process.incarnation});
  }
  const auto most = std::ranges::max_element(classes, {}, &std::vector<GroupProcess>::size);
  return most == classes.end() ? std::vector<GroupProcess>() : *most;
}

void Forming::Found(bool again, TimePoint now) {
  const GroupOptions& options = books_->options;
  const std::vector<GroupProcess> same = LargestClass(again);
  if (same.empty() || same.size() < options.members_min) {
    waits_ = fmt::format("the group waits for {} with the same model (spec.group.minMembers is {})",
                         CountText(options.members_min - same.size(), "more member"),
                         options.members_min);
    enough_since_.reset();
    return;
  }
  if (!enough_since_.has_value()) enough_since_ = now;
  waits_ = "the group begins soon";
  const bool all = same.size() >= options.members_max || AllWorkersAreHere();
  // Rule 12.12.
  if (!again && !all && now - *enough_since_ < options.join_wait) return;
  const GroupIntroduction& founder = *books_->processes.Find(same.front())->introduction;
  books_->lineage.Begin({founder.tensors, founder.initial_digest});
  books_->data->Say("group-began", "",
                    fmt::format("{} of {} have the same model; the initial state is that of {}",
                                CountText(same.size()),
                                CountText(books_->processes.all().size(), "process", "processes"),
                                same.front().worker));
  std::vector<GroupProcess> holders;
  for (auto& [worker, process] : books_->processes.all()) {
    process.refused.clear();
    if (!process.introduction.has_value()) continue;
    CheckModel(worker, &process);
    if (process.refused.empty() && process.introduction->initial_digest == founder.initial_digest) {
      holders.push_back({worker, process.incarnation});
    }
  }
  Begin(std::move(holders));
}

void Forming::CheckModel(const std::string& worker, Process* process) {
  const std::vector<GroupTensor>& group = books_->lineage.model().tensors;
  if (!books_->lineage.begun() || process->introduction->tensors == group) return;
  std::string refused = "its model is not that of the group: " +
                        DifferenceText(process->introduction->tensors, group);
  if (refused == process->refused) return;
  process->refused = std::move(refused);
  books_->data->Say("group-member-refused", worker, process->refused);
}

}  // namespace muster
