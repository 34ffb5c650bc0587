#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "base/words/types.h"
#include "proto/messages/group_standing.h"
#include "proto/messages/group_state.h"
#include "proto/messages/metrics.h"
#include "proto/messages/step_work.h"
#include "proto/messages/worker_control.h"

/// What the members of a synchronous group and the master tell each other (docs/protocol.md,
/// section 12): WorkerService.ExchangeGroup of proto/control.proto as plain values. Each struct is
/// the message of its name, and its list (proto/fields) says how.
namespace muster {

/// What a process says of itself until the master knows it.
struct GroupIntroduction {
  /// In the order in which the trainer registered them. All members must have the same.
  std::vector<GroupTensor> tensors;
  /// CRC-32C of the state that the trainer has made itself: the state before the first step.
  uint32_t initial_digest = 0;
  /// Where other members reach it: "unix:/path", "host:port", in the order of preference.
  std::vector<std::string> addresses;
  static void Fields(auto& f, auto& s) {
    f(1, "tensors", s.tensors, {.most = most::kGroupTensors});
    f(2, "initial_digest", s.initial_digest);
    f(3, "addresses", s.addresses, {.most = most::kAddressesOfMember});
  }
  friend bool operator==(const GroupIntroduction&, const GroupIntroduction&) = default;
};

/// The sum of a step that a member holds and has not applied. Sending it is the member's vote for
/// the step.
struct HeldSum {
  AttemptNumber attempt;
  StepNumber step;
  /// Of the buckets' digests, in order. Members whose digests differ have different sums.
  uint32_t digest = 0;
  /// Of the minibatches that this member has computed.
  ShardMetrics metrics;
  /// What it has pushed is in the tables: the oldest restore epoch of the maps under which it sent
  /// that. 0: it has pushed nothing.
  RestoreEpoch pushed_under;
  static void Fields(auto& f, auto& s) {
    f(1, "attempt", s.attempt), f(2, "step", s.step), f(3, "digest", s.digest);
    f(4, "metrics", s.metrics), f(5, "pushed_under", s.pushed_under);
  }
  friend bool operator==(const HeldSum&, const HeldSum&) = default;
};

/// The member has pushed its share of a replay again.
struct ReplayedShard {
  LeaseToken token;           // StepWork.token
  RestoreEpoch pushed_under;  // as in HeldSum
  static void Fields(auto& f, auto& s) {
    f(1, "token", s.token), f(2, "pushed_under", s.pushed_under);
  }
  friend bool operator==(const ReplayedShard&, const ReplayedShard&) = default;
};

/// The earlier of two values of HeldSum::pushed_under.
inline RestoreEpoch EarlierOf(RestoreEpoch one, RestoreEpoch other) {
  if (one == RestoreEpoch() || other == RestoreEpoch()) return std::max(one, other);
  return std::min(one, other);
}

/// A member that another one cannot reach, or that broke the connection.
struct SuspectedMember {
  std::string worker;
  uint64_t incarnation = 0;
  std::string text;  // the address, and what went wrong
  static void Fields(auto& f, auto& s) {
    f(1, "worker", s.worker, {.most = most::kNameBytes});
    f(2, "incarnation", s.incarnation);
    f(3, "text", s.text, {.most = most::kNameBytes});
  }
  friend bool operator==(const SuspectedMember&, const SuspectedMember&) = default;
};

/// A member could not compute its part of a step: the trainer failed it, or the sum has NaN.
struct FailedStep {
  AttemptNumber attempt;
  StepNumber step;
  std::string reason;
  bool fatal = false;  // no retry can help, and the job fails
  static void Fields(auto& f, auto& s) {
    f(1, "attempt", s.attempt), f(2, "step", s.step);
    f(3, "reason", s.reason), f(4, "fatal", s.fatal);
  }
  friend bool operator==(const FailedStep&, const FailedStep&) = default;
};

/// The piece of a captured state that this member holds.
struct HeldCapture {
  StateLabel label;
  uint32_t stripes = 0;
  StateStripe stripe;
  /// StateDigest::value of the state from which it was copied; 0: not made.
  uint64_t digest = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "label", s.label), f(2, "stripes", s.stripes, {.most = most::kMembers});
    f(3, "stripe", s.stripe), f(4, "digest", s.digest);
  }
  friend bool operator==(const HeldCapture&, const HeldCapture&) = default;
};

/// The state of a member, all of it in every call. The master keeps the call until it has news for
/// the member, or until the heartbeat interval is over; a newer call of the process ends an older
/// one. Idempotent.
struct GroupExchangeRequest {
  std::string worker;
  uint64_t incarnation = 0;  // of the process, as in WorkerExchangeRequest
  uint64_t sequence = 0;     // grows with every call of the process; older calls are ignored
  /// The newest answer that it has taken: who gave it, and its number.
  MasterIncarnation master_incarnation;
  uint64_t news = 0;
  /// Absent once the master knows the process.
  std::optional<GroupIntroduction> introduction;
  /// The attempt that it works for; 0: none.
  AttemptNumber attempt;
  /// Absent: it has no state of any lineage.
  std::optional<StateLabel> state;
  MemberPhase phase = MemberPhase::kIdle;
  std::optional<HeldSum> sum;
  std::optional<FailedStep> failed;
  std::vector<SuspectedMember> suspected;
  std::optional<HeldCapture> capture;
  /// How long a minibatch of the steps takes it, on average; 0: not known.
  uint64_t minibatch_us = 0;
  /// It takes part in no step after the current one.
  bool leaving = false;
  /// Counts what the process gets from others and adds: chunks, buckets, pieces of a state. It says
  /// that the process gets on.
  uint64_t moved = 0;
  std::optional<ReplayedShard> replayed;
  /// Of its last try to copy the state; it tries again. Absent: that worked, or there was none.
  std::optional<UnreadableState> unreadable;
  /// Why it could not store its piece of a captured state; it tries again. Empty: the last piece is
  /// stored, or there was none.
  std::string unwritten;
  /// Its trainer has destroyed the group. If it makes one again, that introduces itself.
  bool gone = false;
  /// Bytes of pieces of captured states that it has copied and stored. It says that it gets on.
  uint64_t written = 0;
  /// The newest one.
  std::optional<StateDigest> digest;
  static void Fields(auto& f, auto& s) {
    f(1, "worker", s.worker, {.most = most::kNameBytes});
    f(2, "incarnation", s.incarnation), f(3, "sequence", s.sequence);
    f(4, "master_incarnation", s.master_incarnation), f(5, "news", s.news);
    f(6, "introduction", s.introduction);
    f(7, "attempt", s.attempt), f(8, "state", s.state);
    f(9, "phase", s.phase, {.most = 5});
    f(10, "sum", s.sum), f(11, "failed", s.failed);
    f(12, "suspected", s.suspected, {.most = most::kMembers});
    f(13, "capture", s.capture), f(14, "minibatch_us", s.minibatch_us);
    f(15, "leaving", s.leaving), f(16, "moved", s.moved);
    f(18, "replayed", s.replayed);
    f(19, "unreadable", s.unreadable), f(20, "unwritten", s.unwritten), f(21, "gone", s.gone);
    f(22, "written", s.written), f(23, "digest", s.digest);
  }
  friend bool operator==(const GroupExchangeRequest&, const GroupExchangeRequest&) = default;
};

struct GroupMember {
  std::string worker;
  uint64_t incarnation = 0;
  std::vector<std::string> addresses;
  static void Fields(auto& f, auto& s) {
    f(1, "worker", s.worker, {.most = most::kNameBytes});
    f(2, "incarnation", s.incarnation);
    f(3, "addresses", s.addresses, {.most = most::kAddressesOfMember});
  }
  friend bool operator==(const GroupMember&, const GroupMember&) = default;
};

/// After the step `step`, every member copies its stripe of the state: that of its rank. It keeps
/// the copy until another capture is asked for.
struct StateCapture {
  StepNumber step;
  AttemptNumber attempt;  // whose ranks count
  uint32_t stripes = 0;
  /// The stripe is also to be stored; empty: not. The name of its object begins like this.
  std::string object_prefix;
  static void Fields(auto& f, auto& s) {
    f(1, "step", s.step), f(2, "attempt", s.attempt);
    f(3, "stripes", s.stripes, {.most = most::kMembers});
    f(4, "object_prefix", s.object_prefix, {.most = 1'024});
  }
  friend bool operator==(const StateCapture&, const StateCapture&) = default;
};

/// Where a learner gets a captured state.
struct StateSource {
  StateLabel label;
  /// Every stripe, in order.
  std::vector<StateStripe> stripes;
  /// Those that hold the stripe of the same place in memory; without a name: it is only stored.
  std::vector<GroupMember> holders;
  static void Fields(auto& f, auto& s) {
    f(1, "label", s.label);
    f(2, "stripes", s.stripes, {.most = most::kMembers});
    f(3, "holders", s.holders, {.most = most::kMembers});
  }
  friend bool operator==(const StateSource&, const StateSource&) = default;
};

/// What a process of the group must know, all of it in every answer.
struct GroupExchangeReply {
  MasterIncarnation master_incarnation;
  /// Grows with every change for this process, within this incarnation of the master.
  uint64_t news = 0;
  JobDirective directive = JobDirective::kWork;
  GroupStanding standing = GroupStanding::kUnknown;
  /// Why the process, or the next step, waits; for people. Empty: nothing waits.
  std::string waits;
  LineageNumber lineage;
  /// The state after this step of the former lineage is the same state of this one.
  StepNumber base;
  /// The initial state of this process is the state before the first step of the lineage.
  bool initial_is_base = false;
  AttemptNumber attempt;
  /// Of the attempt, by rank. Empty for a member that works for it: it has been told.
  std::vector<GroupMember> members;
  uint32_t rank = 0;  // of this process, if it is a member
  /// The newest step that has happened, and the attempt in which it did. Who holds the sum of that
  /// attempt applies it.
  StepNumber step;
  AttemptNumber step_attempt;
  uint64_t step_records = 0;  // of this step, as its members have read them in sum
  /// Of the step after it; absent: there is none now.
  std::optional<StepWork> work;
  /// The shard that probably follows, to be read ahead.
  std::optional<ShardWork> ahead;
  std::optional<StateCapture> capture;
  /// Of a learner.
  std::optional<StateSource> source;
  /// Members keep the sums of the steps after the captured one, because learners need them.
  bool keep_sums = false;
  /// The latest time of the next call.
  std::chrono::milliseconds heartbeat_interval{0};
  /// With kEnd: the job has succeeded. Otherwise, it has failed or was cancelled.
  bool succeeded = false;
  /// The state of this process is not that of the others: it drops it, and learns.
  bool drop_state = false;
  static void Fields(auto& f, auto& s) {
    f(1, "master_incarnation", s.master_incarnation), f(2, "news", s.news);
    f(3, "directive", s.directive, {.most = 2}), f(4, "standing", s.standing, {.most = 4});
    f(5, "waits", s.waits);
    f(6, "lineage", s.lineage), f(7, "base", s.base), f(8, "initial_is_base", s.initial_is_base);
    f(9, "attempt", s.attempt), f(10, "members", s.members, {.most = most::kMembers});
    f(11, "rank", s.rank, {.most = most::kMembers});
    f(12, "step", s.step), f(13, "step_attempt", s.step_attempt);
    f(14, "work", s.work), f(15, "ahead", s.ahead), f(16, "capture", s.capture);
    f(17, "source", s.source), f(18, "keep_sums", s.keep_sums);
    f(19, "heartbeat_interval_ms", s.heartbeat_interval), f(20, "succeeded", s.succeeded);
    f(21, "drop_state", s.drop_state), f(22, "step_records", s.step_records);
  }
  friend bool operator==(const GroupExchangeReply&, const GroupExchangeReply&) = default;
};

}  // namespace muster
