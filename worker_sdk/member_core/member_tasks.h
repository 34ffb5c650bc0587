#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proto/messages/group_control.h"
#include "worker_sdk/member_core/computed_share.h"

/// What MemberCore tells the shell of a member to do.
namespace muster::sdk {

/// What the trainer's thread does next.
struct TrainerTask {
  enum class Kind : uint8_t {
    kWait,     // there is nothing to do now
    kCompute,  // `spans` of `work`, in `run`
    kApply,    // applies the sum of (attempt, step), which this member has made with the others
    kReplay,   // applies the fetched sum of `step`
    /// The state was overwritten, and nobody can offer another. So a new process of the worker must
    /// begin again with an initial state.
    kRestart,
    kEnd,  // refused() says if that is an error
  };
  Kind kind = Kind::kWait;
  StepNumber step;
  AttemptNumber attempt;
  /// Only for kApply: the step was an evaluation, so the state does not change.
  bool evaluation = false;
  uint64_t records = 0;  // kApply: records of the step, the same for all members
  StepRunNumber run = 0;
  StepWork work;
  /// The minibatches of the share that are not computed yet, ascending.
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

/// The gradients to sum with the other members. A bucket begins as soon as it has exactly the
/// minibatches of the share, once per attempt.
struct WantedSum {
  AttemptNumber attempt;
  StepNumber step;
  StepRunNumber run = 0;
  std::vector<MinibatchSpan> share;
  friend bool operator==(const WantedSum&, const WantedSum&) = default;
};

/// What a learner, or a member that lacks a step, copies from other members.
struct GroupTransfer {
  enum class Kind : uint8_t {
    kCopyState,  // copies all stripes of `source` into the registered state, and checks each by its
                 // CRC
    kFetchSum,   // fetches the sum of (lineage, step) from any of `holders`
  };
  Kind kind = Kind::kCopyState;
  StateSource source;
  LineageNumber lineage;
  StepNumber step;
  std::vector<GroupMember> holders;
};

/// The piece of the state to copy. Nothing may change the state meanwhile.
struct CaptureOrder {
  StateLabel label;  // of the present state
  uint32_t stripe = 0;
  uint32_t stripes = 0;
  std::string object_prefix;  // the same as in StateCapture
  /// The digest of the whole state must be made, too.
  bool digest = false;
  friend bool operator==(const CaptureOrder&, const CaptureOrder&) = default;
};

/// What the shell must begin, or look at again, because something has happened.
struct MemberEffects {
  bool task = false;  // NextTask has something to do
  /// The master must hear something that the newest request does not contain. A new call replaces a
  /// parked one at once.
  bool call = false;
  bool ring = false;  // WantedRing has changed
  bool sums = false;  // WantedSums has changed
  /// Stop the transfer in progress, and report that it failed.
  bool stop_transfer = false;
  std::optional<GroupTransfer> transfer;  // one at a time; it lasts until one of its events
  std::optional<CaptureOrder> capture;    // until OnCaptured, nothing changes the state
  std::optional<StateLabel> digest;       // until OnDigest, nothing changes the state
  /// Ask for effects again at this time, even if nothing has happened.
  std::optional<TimePoint> again;

  /// Adds the effects of later events. Nobody has looked at the present ones yet.
  void Add(MemberEffects later);
};

}  // namespace muster::sdk
