#include "master/group_core/answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "master/group_core/state_checks.h"

namespace muster {

std::string Answers::WaitsOf(const Forming& forming) const {
  if (books_->data->Over() || work_->any()) return "";
  if (books_->members.empty()) return forming.waits();
  const size_t members = books_->members.size();
  if (members < books_->options.members_min) {
    return fmt::format("the group has {} and waits for {} (spec.group.minMembers)",
                       CountText(members, "member"),
                       CountText(books_->options.members_min - members, "more", "more"));
  }
  if (books_->AllMembersLeave()) return "all members leave";
  const Lineage& lineage = books_->lineage;
  if (books_->data->NeedsCheckpoint() && lineage.step() > lineage.checkpoint_step()) {
    return fmt::format("the state after step {} is stored", lineage.step().value());
  }
  return "there is no shard to train now";
}

void Answers::Number(const Forming& forming, uint64_t* news) {
  const Lineage& lineage = books_->lineage;
  Told told{.lineage = lineage.number(),
            .step = lineage.step(),
            .attempt = lineage.attempt(),
            .formed = !books_->members.empty(),
            .token = work_->token(),
            .waits = WaitsOf(forming),
            .capture = captures_->asked(),
            .source = captures_->source_number(),
            .checkpoint = lineage.checkpoint_step(),
            .keeps_sums = captures_->KeepsSums(),
            .forming = forming.number(),
            .inquiry = suspicions_->inquires(),
            .over = books_->data->Over()};
  if (told == told_) return;
  told_ = std::move(told);
  told_number_ = ++*news;
}

uint64_t Answers::NewsFor(const GroupProcess& process) const {
  const Process* const known = books_->processes.Find(process);
  return known == nullptr ? 0 : std::max(known->news, told_number_);
}

GroupMember Answers::MemberOf(const GroupProcess& process) const {
  return {process.worker, process.incarnation,
          books_->processes.Find(process)->introduction->addresses};
}

StepWork Answers::WorkOf(uint32_t rank) const {
  StepWork work;
  work.step = books_->lineage.step().Next();
  work.shard = work_->data().shard;
  work.token = work_->token();
  work.begun = work_->begun();
  work.replay = work_->data().replay;
  work.check =
      !work.replay && books_->members.size() > 1 && StateChecks::IsDue(books_->lineage.step());
  for (const ShareRange& range : work_->shares()[rank]) {
    work.share.spans.push_back({MinibatchIndex(range.first), range.count});
  }
  return work;
}

GroupExchangeReply Answers::For(const GroupProcess& process) const {
  const Lineage& lineage = books_->lineage;
  GroupExchangeReply reply;
  reply.master_incarnation = books_->incarnation;
  reply.heartbeat_interval = books_->options.heartbeat_interval;
  reply.lineage = lineage.number();
  reply.base = lineage.base();
  reply.attempt = lineage.attempt();
  reply.step = lineage.step();
  reply.step_attempt = lineage.step_attempt();
  reply.step_records = lineage.step_records();
  const Process* const known = books_->processes.Find(process);
  if (known == nullptr) return reply;
  reply.news = NewsFor(process);
  reply.standing = known->standing;
  reply.waits = known->waits.empty() ? told_.waits : known->waits;
  reply.drop_state = known->differs;
  if (!known->introduction.has_value()) return reply;
  reply.initial_is_base = lineage.begun() && lineage.step() == StepNumber() &&
                          known->refused.empty() &&
                          known->introduction->initial_digest == lineage.model().initial_digest;
  const std::optional<uint32_t> rank = books_->RankOf(process);
  // An attempt has one membership, so a member that works for it has been told.
  if (!rank.has_value() || known->report.attempt != lineage.attempt()) {
    for (const GroupProcess& member : books_->members) reply.members.push_back(MemberOf(member));
  }
  reply.keep_sums = captures_->KeepsSums();
  if (rank.has_value()) {
    reply.rank = *rank;
    if (captures_->IsAsked(process)) reply.capture = captures_->asked();
    if (work_->any()) reply.work = WorkOf(*rank);
  }
  if (known->standing == GroupStanding::kLearner) reply.source = captures_->Source();
  return reply;
}

bool Answers::AwaitsMember(const GroupProcess& member) const {
  switch (books_->ReportOf(member).phase) {
    case MemberPhase::kComputing:
      return work_->any();
    case MemberPhase::kApplying:
      return true;
    case MemberPhase::kReducing:
      // All add together. Once another one has the sum, nobody holds this one up.
      return std::ranges::any_of(books_->members, [this](const GroupProcess& other) {
        return books_->ReportOf(other).phase == MemberPhase::kVoted;
      });
    default:
      return false;
  }
}

bool Answers::AwaitsLearner(const Process& process) {
  const MemberPhase phase = process.report.phase;
  // Another process could not read the stored state either.
  if (process.report.unreadable.has_value()) return false;
  // kComputing: its trainer has not left the loop of a step that it has lost.
  return phase == MemberPhase::kLearning || phase == MemberPhase::kApplying ||
         phase == MemberPhase::kComputing;
}

bool Answers::Awaits(const GroupProcess& key, const Process& process) const {
  if (process.standing == GroupStanding::kLearner) return AwaitsLearner(process);
  return books_->IsMember(key) && AwaitsMember(key);
}

GroupCore::View Answers::Show() const {
  const Lineage& lineage = books_->lineage;
  GroupCore::View view{.lineage = lineage.number(),
                       .attempt = lineage.attempt(),
                       .step = lineage.step(),
                       .checkpoint = lineage.checkpoint_step(),
                       .shard = std::nullopt,
                       .waits = told_.waits,
                       .processes = {}};
  if (work_->any()) view.shard = work_->data().shard;
  for (const auto& [worker, process] : books_->processes.all()) {
    const GroupProcess key{worker, process.incarnation};
    const std::optional<uint32_t> rank = books_->RankOf(key);
    GroupCore::ProcessView shown{.worker = worker,
                                 .incarnation = process.incarnation,
                                 .standing = process.standing,
                                 .rank = rank.value_or(0),
                                 .phase = process.report.phase,
                                 .state = process.report.state,
                                 .share = 0,
                                 .minibatch_us = process.report.minibatch_us,
                                 .waits = process.waits,
                                 .suspected = suspicions_->Suspects(key),
                                 .awaited = Awaits(key, process),
                                 .moved = process.report.moved};
    if (rank.has_value() && work_->any()) {
      shown.share = static_cast<uint32_t>(CountOf(work_->shares()[*rank]));
    }
    view.processes.push_back(std::move(shown));
  }
  return view;
}

}  // namespace muster
