#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proto/messages/group_control.h"
#include "worker_sdk/member_core/computed_share.h"

/// What a member's shell is to do, as MemberCore says it.
namespace muster::sdk {

/// What the trainer's thread does next.
struct TrainerTask {
  enum class Kind : uint8_t {
    kWait,     // nothing now
    kCompute,  // `spans` of `work`, in `run`
    kApply,    // the sum of (attempt, step), which this member has made with the others
    kReplay,   // the fetched sum of `step`
    /// The state was overwritten, and nobody can give another: a new process of the worker begins
    /// with an initial state again.
    kRestart,
    kEnd,  // refused() says if that is an error
  };
  Kind kind = Kind::kWait;
  StepNumber step;
  AttemptNumber attempt;
  /// kApply: the step was an evaluation, and there is nothing to change.
  bool evaluation = false;
  uint64_t records = 0;  // kApply: of the step, the same for all members
  StepRunNumber run = 0;
  StepWork work;
  /// Those minibatches of the share that are not computed yet, ascending.
  std::vector<MinibatchSpan> spans;
};

/// The connections among the members of an attempt.
struct GroupRing {
  LineageNumber lineage;
  AttemptNumber attempt;
  uint32_t rank = 0;
  std::vector<GroupMember> members;
  friend bool operator==(const GroupRing&, const GroupRing&) = default;
};

/// The gradients that are to be added with those of the other members: a bucket as soon as it has
/// exactly the minibatches of the share. Once per attempt and bucket.
struct WantedSum {
  AttemptNumber attempt;
  StepNumber step;
  StepRunNumber run = 0;
  std::vector<MinibatchSpan> share;
  friend bool operator==(const WantedSum&, const WantedSum&) = default;
};

/// What a learner, or a member that lacks a step, gets from others.
struct GroupTransfer {
  enum class Kind : uint8_t {
    kCopyState,  // all stripes of `source`, each checked by its CRC, into the registered state
    kFetchSum,   // the sum of (lineage, step), from any of `holders`
  };
  Kind kind = Kind::kCopyState;
  StateSource source;
  LineageNumber lineage;
  StepNumber step;
  std::vector<GroupMember> holders;
};

/// The piece of the state that is to be copied, while nothing changes the state.
struct CaptureOrder {
  StateLabel label;  // of the state that is there now
  uint32_t stripe = 0;
  uint32_t stripes = 0;
  std::string object_prefix;  // as in StateCapture
  /// The digest of the whole state is to be made with it.
  bool digest = false;
  friend bool operator==(const CaptureOrder&, const CaptureOrder&) = default;
};

/// What the shell is to begin, or to look at again, because of what has happened.
struct MemberEffects {
  bool task = false;  // NextTask has something to do
  /// The master must hear something that the newest request does not say: a parked call is
  /// superseded at once.
  bool call = false;
  bool ring = false;  // WantedRing has changed
  bool sums = false;  // WantedSums has changed
  /// Break off the transfer that was begun, and report that it failed.
  bool stop_transfer = false;
  std::optional<GroupTransfer> transfer;  // one at a time, until one of its events
  std::optional<CaptureOrder> capture;    // until OnCaptured, nothing changes the state
  std::optional<StateLabel> digest;       // until OnDigest, nothing changes the state
  /// Ask for effects again then, although nothing has happened.
  std::optional<TimePoint> again;

  /// Those of later events come to these, which nobody has looked at.
  void Add(MemberEffects later);
};

}  // namespace muster::sdk
