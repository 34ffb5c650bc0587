#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "master/group_core/captures.h"
#include "master/group_core/forming.h"
#include "master/group_core/group_books.h"
#include "master/group_core/membership.h"
#include "master/group_core/stalls.h"
#include "master/group_core/step_work.h"
#include "master/group_core/suspicions.h"
#include "master/group_core/votes.h"
#include "tests/master/group_core/fake_data.h"

namespace muster::testing {

inline const std::vector<GroupTensor> kModel = {{"w", GroupDtype::kFloat32, 10, false, 0}};

/// The parts of a group over one set of books, each to be called by itself, and a clock by hand.
/// Master incarnation 2. Four shards of six minibatches.
class GroupParts {
 public:
  explicit GroupParts(GroupOptions options = {}, GroupRecords records = {})
      : books{std::move(options), MasterIncarnation(2), &data, Lineage(std::move(records)), {}, {}},
        captures(&books, now),
        membership(&books, &work, &captures, &suspicions),
        forming(&books, &membership, &work, &captures) {
    data.incarnation = books.incarnation;
  }

  static GroupProcess Named(uint64_t i) { return {"worker-" + std::to_string(i), 10 + i}; }
  /// A call of worker i. Its state is that of the newest step, unless `state` says otherwise.
  Process& Hear(uint64_t i, GroupExchangeRequest call = {}) {
    const GroupProcess name = Named(i);
    call.worker = name.worker;
    call.incarnation = name.incarnation;
    call.sequence = ++sequence_;
    if (books.processes.Find(name) == nullptr) {
      call.introduction = GroupIntroduction{kModel, 7, {"unix:/" + name.worker}};
    }
    MUSTER_CHECK(books.processes.Hear(call, now).ok());
    return *books.processes.Find(name);
  }
  /// The state after the newest step, or `missed` steps before it.
  GroupExchangeRequest Holding(uint64_t missed = 0) const {
    GroupExchangeRequest call;
    call.attempt = books.lineage.attempt();
    call.state = {books.lineage.number(), StepNumber(books.lineage.step().value() - missed)};
    return call;
  }
  GroupExchangeRequest Vote(uint32_t digest = 1) const {
    GroupExchangeRequest call = Holding();
    call.sum = HeldSum{books.lineage.attempt(), books.lineage.step().Next(), digest, {}};
    call.sum->metrics.records = 10;
    return call;
  }
  /// The first lineage has begun, and workers 0 .. count-1 are members.
  void Begin(uint64_t count) {
    books.lineage.Begin({kModel, 7});
    std::vector<GroupProcess> members;
    for (uint64_t i = 0; i < count; ++i) {
      Hear(i, Holding());
      members.push_back(Named(i));
    }
    membership.NewAttempt(members, "test");
  }
  /// All members vote for the step in work, and it happens.
  void DoStep() {
    if (!work.any()) work.Begin();
    for (const GroupProcess& member : books.members) {
      Hear(static_cast<uint64_t>(member.worker.back() - '0'), Vote());
    }
    std::string why;
    MUSTER_CHECK(votes.Count(&why) == Votes::Outcome::kHappened);
  }
  void Pass(std::chrono::milliseconds time) { now += time; }

  TimePoint now{std::chrono::seconds(100)};
  FakeData data{{6, 6, 6, 6}};
  GroupBooks books;
  StepInWork work{&books};
  Captures captures;
  Suspicions suspicions{&books};
  Stalls stalls{&books, &work};
  Membership membership;
  Votes votes{&books, &work, &suspicions};
  Forming forming;

 private:
  uint64_t sequence_ = 0;
};

}  // namespace muster::testing
