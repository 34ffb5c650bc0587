#include "master/group_core/group_core.h"

#include <fmt/format.h>

#include <utility>

#include "master/group_core/answers.h"
#include "master/group_core/captures.h"
#include "master/group_core/forming.h"
#include "master/group_core/group_books.h"
#include "master/group_core/membership.h"
#include "master/group_core/stalls.h"
#include "master/group_core/state_checks.h"
#include "master/group_core/step_work.h"
#include "master/group_core/suspicions.h"
#include "master/group_core/votes.h"

namespace muster {

/// A part calls only parts above it.
struct GroupCore::Parts {
  Parts(GroupOptions options, MasterIncarnation incarnation, GroupRecords records, GroupData* data,
        TimePoint now)
      : books{std::move(options), incarnation, data, Lineage(std::move(records)), {}, {}},
        captures(&books, now),
        membership(&books, &work, &captures, &suspicions),
        forming(&books, &membership, &work, &captures) {}

  GroupBooks books;
  StepInWork work{&books};
  Captures captures;
  Suspicions suspicions{&books};
  Stalls stalls{&books, &work};
  StateChecks state_checks{&books};
  Membership membership;
  Votes votes{&books, &work, &suspicions};
  Forming forming;
  Answers answers{&books, &work, &captures, &suspicions};
};

GroupCore::GroupCore(GroupOptions options, MasterIncarnation incarnation, GroupRecords records,
                     GroupData* data, TimePoint now)
    : parts_(
          std::make_unique<Parts>(std::move(options), incarnation, std::move(records), data, now)) {
  // The last master may have ended in the middle of it.
  data->Checkpointed(parts_->books.lineage.steps_after_checkpoint());
}

GroupCore::~GroupCore() = default;

absl::Status GroupCore::Exchange(const GroupExchangeRequest& request, TimePoint now) {
  const absl::Status heard = parts_->books.processes.Hear(request, now);
  if (!heard.ok()) return absl::IsAlreadyExists(heard) ? absl::OkStatus() : heard;
  if (request.introduction.has_value()) {
    parts_->forming.CheckModel(request.worker, &parts_->books.processes.all().at(request.worker));
  }
  Advance(now);
  return absl::OkStatus();
}

void GroupCore::Gone(const std::string& worker, uint64_t incarnation, TimePoint now) {
  GroupBooks& books = parts_->books;
  std::vector<GroupProcess> gone;
  if (incarnation != 0) gone.push_back({worker, incarnation});
  const auto known = books.processes.all().find(worker);
  if (incarnation == 0 && known != books.processes.all().end()) {
    gone.push_back({worker, known->second.incarnation});
  }
  // A master that continues may not have heard of the process yet.
  for (const GroupProcess& member : books.lineage.attempt_members()) {
    if (incarnation == 0 && gone.empty() && member.worker == worker) gone.push_back(member);
  }
  for (const GroupProcess& process : gone) {
    books.processes.Bury(process.worker, process.incarnation);
    parts_->membership.NoteLoss(process, "its process has ended");
  }
  Advance(now);
}

void GroupCore::Crashed(const std::string& worker, uint64_t incarnation, LeaseToken token,
                        std::string_view reason, TimePoint now) {
  // Rule 12.14.
  parts_->work.Charge(token, {worker, incarnation}, reason);
  Gone(worker, incarnation, now);
}

void GroupCore::Drain(const std::string& worker, bool drains, TimePoint now) {
  const auto process = parts_->books.processes.all().find(worker);
  if (process == parts_->books.processes.all().end() || process->second.drains == drains) return;
  process->second.drains = drains;
  process->second.news = ++parts_->books.news;
  Advance(now);
}

void GroupCore::Tick(TimePoint now) {
  Advance(now);
}

void GroupCore::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  parts_->books.processes.Forgive(gap, now);
}

void GroupCore::Advance(TimePoint now) {
  GroupBooks& books = parts_->books;
  if (books.data->Over()) return Close();
  books.processes.EndEvictions(now);
  // Rule 12.13.
  for (const GroupProcess& silent : books.processes.TakeSilent(books.options.silence_limit, now)) {
    parts_->membership.NoteLoss(
        silent, fmt::format("it was silent for {} ms", books.options.silence_limit.count()));
  }
  const std::vector<GroupProcess> former = books.members;
  if (!books.members.empty()) parts_->membership.DropLost(now);
  parts_->captures.Take(now);
  if (!books.members.empty() && !books.data->Over()) AdvanceStep(now);
  if (books.members.empty()) {
    // Nobody is left: those that may come back are awaited.
    if (!former.empty()) parts_->forming.Begin(former);
    parts_->forming.Advance(now);
  }
  parts_->membership.Place(parts_->forming.waits());
  if (!books.members.empty() && !parts_->work.any()) {
    parts_->captures.Ask(now);
    parts_->work.Begin();
  }
  parts_->answers.Number(parts_->forming, &parts_->books.news);
}

void GroupCore::Close() {
  // Processes end now, one after the other, and nobody waits for them.
  parts_->books.members.clear();
  parts_->work.End();
  parts_->membership.Place("");
  parts_->answers.Number(parts_->forming, &parts_->books.news);
}

void GroupCore::AdvanceStep(TimePoint now) {
  GroupBooks& books = parts_->books;
  JudgeStates();
  if (books.data->Over()) return;
  std::string why;
  const Votes::Outcome outcome = parts_->votes.Count(&why);
  if (books.data->Over()) return;
  if (outcome == Votes::Outcome::kFailed) parts_->membership.Retry(why);
  if (outcome == Votes::Outcome::kHappened) parts_->stalls.OnStep();
  parts_->suspicions.Take(now);
  if (std::optional<Suspicions::Verdict> verdict = parts_->suspicions.Judge(now)) {
    if (verdict->evicted.has_value()) {
      Process* const process = books.processes.Find(*verdict->evicted);
      process->evicted_until = now + verdict->away;
      books.data->Say("group-member-evicted", verdict->evicted->worker, verdict->why);
    }
    parts_->membership.Without(verdict->out, verdict->why);
  }
  if (!books.members.empty()) JudgeStall(now);
  if (!books.members.empty() && !parts_->work.any()) {
    parts_->membership.ChangeBetweenSteps(outcome == Votes::Outcome::kHappened, now);
  }
}

void GroupCore::JudgeStates() {
  const std::optional<StateChecks::Verdict> verdict = parts_->state_checks.Judge();
  if (!verdict.has_value()) return;
  GroupBooks& books = parts_->books;
  if (verdict->out.empty()) {
    books.data->Say("group-states-differ", "", verdict->why);
    return books.data->FailJob(fmt::format(
        "the members of the group have different states, and none is that of most of them: {}. "
        "`apply` may depend only on the registered state, the sums, records(), step() and epoch(), "
        "and nothing else may change the state; members on processors of different kinds may also "
        "come to other bits",
        verdict->why));
  }
  for (const auto& [process, why] : verdict->out) {
    books.processes.Find(process)->differs = true;
    books.data->Say("group-states-differ", process.worker,
                    fmt::format("{}: it drops it, and learns that of the others", why));
  }
  parts_->membership.Without(verdict->out, "");
}

void GroupCore::JudgeStall(TimePoint now) {
  const std::optional<std::string> verdict = parts_->stalls.Judge(now);
  if (!verdict.has_value()) return;
  parts_->books.data->Say("group-sums-stall", "", *verdict);
  parts_->membership.Without({}, *verdict);
}

uint64_t GroupCore::NewsFor(const std::string& worker, uint64_t incarnation) const {
  return parts_->answers.NewsFor({worker, incarnation});
}

GroupExchangeReply GroupCore::ReplyFor(const std::string& worker, uint64_t incarnation) const {
  return parts_->answers.For({worker, incarnation});
}

bool GroupCore::HasNewerCall(const std::string& worker, uint64_t incarnation,
                             uint64_t sequence) const {
  const Process* const process = parts_->books.processes.Find({worker, incarnation});
  return process != nullptr && process->report.sequence > sequence;
}

std::optional<ShardId> GroupCore::ahead() const {
  if (!parts_->work.any()) return std::nullopt;
  return parts_->work.data().ahead;
}

uint64_t GroupCore::steps_after_checkpoint() const {
  return parts_->books.lineage.steps_after_checkpoint();
}

const GroupModelRecord& GroupCore::model() const {
  return parts_->books.lineage.model();
}

const std::optional<CheckpointRecord>& GroupCore::checkpoint() const {
  return parts_->books.lineage.checkpoint();
}

bool GroupCore::IsMember(const std::string& worker) const {
  const auto process = parts_->books.processes.all().find(worker);
  return process != parts_->books.processes.all().end() &&
         parts_->books.IsMember({worker, process->second.incarnation});
}

StoredStates GroupCore::stored_states() const {
  return StoredStatesOf(parts_->books);
}

void GroupCore::Collect(std::vector<GroupMutation>* mutations) {
  parts_->books.lineage.Collect(mutations);
}

std::vector<std::string> GroupCore::TakeUnusedObjects() {
  return parts_->captures.TakeUnusedObjects();
}

GroupCore::View GroupCore::Show() const {
  return parts_->answers.Show();
}

}  // namespace muster
