#include "master/group_core/votes.h"

#include <fmt/format.h>

#include "base/text.h"
#include "proto/messages/metrics.h"

namespace muster {

const HeldSum* Votes::VoteOf(const GroupProcess& member) const {
  const GroupExchangeRequest& report = books_->ReportOf(member);
  const Lineage& lineage = books_->lineage;
  // Rule 12.4.
  if (!report.sum.has_value() || report.sum->attempt != lineage.attempt() ||
      report.sum->step != lineage.step().Next() ||
      report.state != StateLabel{lineage.number(), lineage.step()}) {
    return nullptr;
  }
  return &*report.sum;
}

bool Votes::AnyFailed(std::string* why) {
  const Lineage& lineage = books_->lineage;
  bool any = false;
  for (const GroupProcess& member : books_->members) {
    const std::optional<FailedStep>& failed = books_->ReportOf(member).failed;
    if (!failed.has_value() || failed->attempt != lineage.attempt() ||
        failed->step != lineage.step().Next()) {
      continue;
    }
    any = true;
    const std::string reason = Excerpt(failed->reason, 1'000);
    *why = fmt::format("{} failed the step: {}", member.worker, reason);
    if (failed->fatal) {
      books_->data->FailJob(fmt::format("{}: {}", member.worker, reason));
      break;
    }
    // Rule 12.15.
    work_->Charge(work_->token(), member, reason);
  }
  return any;
}

std::vector<GroupProcess> Votes::Voters() const {
  std::vector<GroupProcess> voters;
  for (const GroupProcess& member : books_->members) {
    if (VoteOf(member) != nullptr) voters.push_back(member);
  }
  return voters;
}

bool Votes::Differ(const std::vector<GroupProcess>& voters, std::string* text) const {
  bool differ = false;
  for (const GroupProcess& member : voters) {
    differ = differ || VoteOf(member)->digest != VoteOf(voters.front())->digest;
    *text += fmt::format("{}{} has {:08x}", text->empty() ? "" : ", ", member.worker,
                         VoteOf(member)->digest);
  }
  return differ;
}

void Votes::CountReplay() {
  RestoreEpoch pushed_under;
  for (const GroupProcess& member : books_->members) {
    const std::optional<ReplayedShard>& replayed = books_->ReportOf(member).replayed;
    if (!replayed.has_value() || replayed->token != work_->token()) return;
    pushed_under = EarlierOf(pushed_under, replayed->pushed_under);
  }
  books_->data->Replayed(work_->data().shard, pushed_under);
  work_->End();
  suspicions_->OnStep();
}

void Votes::Commit(const std::vector<GroupProcess>& voters) {
  ShardMetrics metrics;
  RestoreEpoch pushed_under;
  for (const GroupProcess& member : voters) {
    Merge(&metrics, VoteOf(member)->metrics);
    pushed_under = EarlierOf(pushed_under, VoteOf(member)->pushed_under);
  }
  const StepNumber step = books_->lineage.step().Next();
  const StepData data = work_->data();
  // The members take turns: over many steps, each gets its part of the progress.
  const std::string& worker = books_->members[step.value() % books_->members.size()].worker;
  const uint32_t digest = VoteOf(voters.front())->digest;
  books_->data->Commit(data.shard, work_->token(), metrics, worker, pushed_under);
  // Rule 12.25.
  books_->lineage.Commit(data.shard, digest, metrics.records);
  work_->End();
  suspicions_->OnStep();
  differed_ = 0;
}

Votes::Outcome Votes::Count(std::string* why) {
  if (!work_->any()) return Outcome::kOpen;
  if (AnyFailed(why)) return Outcome::kFailed;
  if (work_->HasLostData()) {
    *why = "its shard has failed, and another one takes its place";
    return Outcome::kFailed;
  }
  if (work_->data().replay) {
    CountReplay();
    return Outcome::kOpen;
  }
  const std::vector<GroupProcess> voters = Voters();
  if (voters.size() < books_->members.size()) return Outcome::kOpen;
  std::string text;
  if (!Differ(voters, &text)) {
    Commit(voters);
    return Outcome::kHappened;
  }
  *why = "the sums differ: " + text;
  books_->data->Say("group-sums-differ", "",
                    fmt::format("step {}, attempt {}: {}", books_->lineage.step().value() + 1,
                                books_->lineage.attempt().value(), text));
  if (++differed_ == kDifferMax) {
    books_->data->FailJob(
        fmt::format("the members of the group have different sums of step {} {} "
                    "times in a row, so their states or their data differ: {}",
                    books_->lineage.step().value() + 1, kDifferMax, text));
  }
  return Outcome::kFailed;
}

}  // namespace muster
