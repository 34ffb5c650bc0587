#include "master/group_core/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

std::string NamesOf(const std::vector<GroupProcess>& members) {
  constexpr size_t kShownMax = 16;
  std::string names;
  for (size_t i = 0; i < members.size() && i < kShownMax; ++i) {
    names += (i == 0 ? "" : ", ") + members[i].worker;
  }
  return members.size() > kShownMax ? names + ", ..." : names;
}

}  // namespace

void Membership::NewAttempt(std::vector<GroupProcess> members, std::string_view why) {
  const std::vector<GroupProcess> former = std::exchange(books_->members, std::move(members));
  for (auto& [worker, process] : books_->processes.all()) {
    if (!books_->IsMember({worker, process.incarnation})) process.catches_up.reset();
  }
  suspicions_->OnAttempt();
  captures_->OnAttempt();
  losses_.clear();
  if (books_->members.empty()) {
    work_->Pause();
    return books_->data->Say("group-changed", "", fmt::format("no member is left: {}", why));
  }
  books_->lineage.NewAttempt(books_->members);
  work_->Retry(former);
  const size_t count = books_->members.size(), least = books_->options.members_min;
  const std::string waits =
      count < least ? fmt::format("; a step needs {} (spec.group.minMembers)", least) : "";
  books_->data->Say(
      "group-changed", "",
      fmt::format("attempt {} of step {}: {}: {} ({}){}", books_->lineage.attempt().value(),
                  books_->lineage.step().value() + 1, CountText(count, "member"),
                  NamesOf(books_->members), why, waits));
}

void Membership::Without(const std::vector<std::pair<GroupProcess, std::string>>& out,
                         std::string_view why) {
  std::vector<GroupProcess> members = books_->members;
  std::string text(why);
  for (const auto& [process, reason] : out) {
    if (std::erase(members, process) == 0) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", process.worker, reason);
  }
  NewAttempt(std::move(members), text);
}

std::string Membership::LossOf(const GroupProcess& member, TimePoint now) {
  Process* const process = books_->processes.Find(member);
  if (process == nullptr) {
    const auto loss = losses_.find(member);
    return loss == losses_.end() ? "another process has its name" : loss->second;
  }
  const Lineage& lineage = books_->lineage;
  const GroupExchangeRequest& report = process->report;
  if (report.gone) return "its trainer has left the group";
  if (report.state == StateLabel{lineage.number(), lineage.step()}) process->catches_up.reset();
  // Rule 12.3.
  if (lineage.Holds(report)) return "";
  if (!process->catches_up.has_value() || !lineage.IsClose(report, 2)) {
    return fmt::format("it has not the state after step {}", lineage.step().value());
  }
  const bool slow = now - *process->catches_up >= 2 * books_->options.silence_limit;
  return slow ? "it does not catch up" : "";
}

void Membership::DropLost(TimePoint now) {
  std::vector<std::pair<GroupProcess, std::string>> lost;
  // The others have the sum to tell only when they have applied it.
  const bool others_apply = std::ranges::any_of(books_->members, [this](const auto& member) {
    const Process* const process = books_->processes.Find(member);
    return process != nullptr && process->report.phase == MemberPhase::kApplying;
  });
  for (const GroupProcess& member : books_->members) {
    Process* const process = books_->processes.Find(member);
    if (others_apply && process != nullptr && process->catches_up.has_value()) {
      process->catches_up = now;
    }
    if (std::string why = LossOf(member, now); !why.empty()) {
      lost.emplace_back(member, std::move(why));
    }
  }
  if (!lost.empty()) Without(lost, "");
}

bool Membership::MayJoin(const Process& process, bool stepped) const {
  if (process.standing != GroupStanding::kLearner || !process.usable() || process.leaves()) {
    return false;
  }
  const Lineage& lineage = books_->lineage;
  // Rule 12.9.
  if (lineage.IsClose(process.report, 0)) return true;
  // Members have kept the sums that it lacks.
  return stepped && lineage.IsClose(process.report, 2) && captures_->KeptSince().has_value() &&
         process.report.state->step >= *captures_->KeptSince();
}

void Membership::ChangeBetweenSteps(bool stepped, TimePoint now) {
  std::vector<GroupProcess> members = books_->members;
  std::string why;
  const Lineage& lineage = books_->lineage;
  // The last ones go when everything that they have is stored.
  const bool saved = lineage.step() == lineage.checkpoint_step();
  if (!books_->AllMembersLeave() || saved) {
    std::erase_if(members, [&](const GroupProcess& member) {
      if (!books_->processes.Find(member)->leaves()) return false;
      why += fmt::format("{}{} leaves", why.empty() ? "" : "; ", member.worker);
      return true;
    });
  }
  // A capture that begins has its ranks.
  if (!captures_->pending()) {
    for (auto& [worker, process] : books_->processes.all()) {
      if (members.size() >= books_->options.members_max) break;
      const GroupProcess one{worker, process.incarnation};
      if (books_->IsMember(one) || !MayJoin(process, stepped)) continue;
      members.push_back(one);
      if (!lineage.IsClose(process.report, 0)) process.catches_up = now;
      why += fmt::format("{}{} joins", why.empty() ? "" : "; ", worker);
    }
  }
  if (members != books_->members) NewAttempt(std::move(members), why);
}

std::pair<GroupStanding, std::string> Membership::PlaceOf(const Process& process,
                                                          std::string_view forms,
                                                          size_t* room) const {
  if (!process.introduction.has_value()) return {GroupStanding::kUnknown, ""};
  if (!process.refused.empty()) return {GroupStanding::kRefused, process.refused};
  if (process.evicted_until.has_value()) {
    return {GroupStanding::kWaiting, "other members could not reach it"};
  }
  if (process.differs) {
    return {GroupStanding::kWaiting, "its state is not that of the other members"};
  }
  if (process.leaves()) return {GroupStanding::kWaiting, "it leaves"};
  const bool learns = books_->lineage.begun() &&
                      (!books_->members.empty() || captures_->Source().has_value()) &&
                      !(books_->members.empty() && books_->lineage.Holds(process.report));
  if (!learns) return {GroupStanding::kWaiting, std::string(forms)};
  if (*room == 0) {
    return {GroupStanding::kWaiting,
            fmt::format("the group has {} members, and may have no more (spec.group.maxMembers)",
                        books_->options.members_max)};
  }
  --*room;
  return {GroupStanding::kLearner, ""};
}

void Membership::Place(std::string_view forms) {
  const size_t members = books_->members.size();
  size_t room =
      books_->options.members_max - std::min<size_t>(members, books_->options.members_max);
  for (auto& [worker, process] : books_->processes.all()) {
    auto [standing, waits] = books_->IsMember({worker, process.incarnation})
                                 ? std::pair(GroupStanding::kMember, std::string())
                                 : PlaceOf(process, forms, &room);
    if (process.news != 0 && standing == process.standing && waits == process.waits) continue;
    process.standing = standing;
    process.waits = std::move(waits);
    process.news = ++books_->news;
  }
}

}  // namespace muster
