#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "master/group_core/captures.h"
#include "master/group_core/group_books.h"
#include "master/group_core/step_work.h"
#include "master/group_core/suspicions.h"

namespace muster {

/// Who takes part: members leave at once when they are lost, and at the end of a step when they
/// want to; learners become members with a step that happens. Every change is a new attempt.
///
/// Owns why processes are lost, for the events. Pure; not thread-safe.
class Membership {
 public:
  /// All of them outlive it.
  Membership(GroupBooks* books, StepInWork* work, Captures* captures, Suspicions* suspicions)
      : books_(books), work_(work), captures_(captures), suspicions_(suspicions) {}

  /// The processes of these ranks work on the next step from now on. Empty: the group must form
  /// again. `why`: for the event.
  void NewAttempt(std::vector<GroupProcess> members, std::string_view why);
  /// Tries the step again with the same members.
  void Retry(std::string_view why) { NewAttempt(books_->members, why); }
  /// Tries it again without these; says why of each.
  void Without(const std::vector<std::pair<GroupProcess, std::string>>& out, std::string_view why);

  /// Why a process is not there any more, for the event of its loss.
  void NoteLoss(const GroupProcess& process, std::string text) {
    if (books_->IsMember(process)) losses_[process] = std::move(text);
  }
  /// Goes on without the members that are lost, or that lack a step that they had.
  void DropLost(TimePoint now);
  /// No step is in work: members go that want to, and learners come. `stepped`: a step has happened
  /// just now, so its sum is still to be had.
  void ChangeBetweenSteps(bool stepped, TimePoint now);
  /// Says to each process what it is now.
  void Place(std::string_view forms);

 private:
  /// Why it can be a member no longer; empty: it can.
  std::string LossOf(const GroupProcess& member, TimePoint now);
  bool MayJoin(const Process& process, bool stepped) const;
  /// The standing of a process that is no member, and why it waits.
  std::pair<GroupStanding, std::string> PlaceOf(const Process& process, std::string_view forms,
                                                size_t* room) const;

  GroupBooks* const books_;
  StepInWork* const work_;
  Captures* const captures_;
  Suspicions* const suspicions_;
  std::map<GroupProcess, std::string> losses_;
};

}  // namespace muster
