#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "master/group_core/group_books.h"
#include "proto/messages/group_control.h"

namespace muster {

/// When the members copy the state, and what becomes of the copy: a checkpoint, a source for
/// learners, or both.
///
/// Owns the newest capture. It is asked for only between two steps, so no member has left the step
/// that it is to copy. A capture ends the one before it, and members keep the sums of the steps
/// after the newest one only. So none begins while a member still fetches a sum, and a checkpoint
/// waits for a learner that gets on. Pure; not thread-safe.
class Captures {
 public:
  /// `books` outlives it.
  Captures(GroupBooks* books, TimePoint now) : books_(books), checkpoint_at_(now) {}

  /// Takes what the members report of the capture. Accepts a checkpoint when all stripes of it are
  /// stored. A capture counts for nothing if its holders had different states.
  void Take(TimePoint now);
  /// Asks for a capture if one is needed. Only between two steps.
  void Ask(TimePoint now);
  /// There is a new attempt. A capture goes on only if every stripe of it can still be had.
  void OnAttempt();
  /// Steps were undone, or nobody holds anything of the capture.
  void Drop();

  /// What the members are asked for; none: nothing. It stays while they are to keep the copy.
  const std::optional<StateCapture>& asked() const { return asked_; }
  /// True if the process is one of those that are asked.
  bool IsAsked(const GroupProcess& process) const {
    return std::ranges::find(holders_, process) != holders_.end();
  }
  /// Somebody has not copied its stripe yet.
  bool pending() const { return asked_.has_value() && !Complete(); }
  /// True while members must keep the sums of the steps after the captured one.
  bool KeepsSums() const { return (for_learners_ && AnyLearner()) || AnyCatchesUp(); }
  /// The sums of all steps after this one are kept; none: not of all since any step.
  std::optional<StepNumber> KeptSince() const {
    if (!asked_.has_value() || !for_learners_) return std::nullopt;
    return asked_->step;
  }
  /// Where learners get the state; none: nowhere yet. It grows stale: `source_number` changes with
  /// it.
  std::optional<StateSource> Source() const;
  uint64_t source_number() const { return number_; }
  /// Stored objects that nothing names any more.
  std::vector<std::string> TakeUnusedObjects() { return std::exchange(unused_, {}); }

 private:
  bool Complete() const;
  bool AnyLearner() const;
  bool AnyCatchesUp() const;
  /// A learner can have the stripe of this rank: from its holder, or from where it is stored.
  bool CanBeHad(size_t rank) const;
  bool NeedsCheckpoint(TimePoint now) const;
  bool NeedsSource() const;
  /// A learner cannot read a stripe that is only stored.
  bool IsUnreadable() const;
  /// The job, or members that leave, wait for a checkpoint.
  bool IsAwaited() const;
  /// So many sums are kept after this capture, at most.
  uint64_t KeptSumsMax() const;
  /// More sums would be kept than members should hold.
  bool IsOld() const;
  /// Looks whether those that are asked get on.
  void WatchHolders(TimePoint now);
  /// Looks whether the learners get on.
  void WatchLearners(TimePoint now);
  /// A learner gets on with this capture, so another one would make it begin again.
  bool IsInUse(TimePoint now) const;
  /// Members keep no more sums than they should hold, even while they store this capture.
  void GiveUpLearners();
  /// A capture that is not of the state that was asked for counts for nothing.
  bool IsOfAsked(const HeldCapture& held, uint32_t rank) const;
  void TakeStripe(uint32_t rank, const HeldCapture& held);
  /// The holders have copied from different states.
  bool Differs() const;
  void AcceptStored();
  void Forget(const std::vector<StateStripe>& stripes);

  GroupBooks* const books_;
  std::optional<StateCapture> asked_;
  /// It becomes a checkpoint, and has not become one yet.
  bool stores_ = false;
  /// The sums of all steps after it are kept.
  bool for_learners_ = false;
  /// How many captures learners have had, in a row, without being ready.
  uint32_t captures_for_learners_ = 0;
  /// Of all learners: what they have, and what they have moved.
  std::vector<std::pair<std::optional<StateLabel>, uint64_t>> learned_;
  TimePoint learned_at_;
  LineageNumber lineage_;
  TimePoint asked_at_;
  /// By rank of its attempt.
  std::vector<GroupProcess> holders_;
  std::vector<bool> copied_;
  std::vector<StateStripe> stripes_;
  /// By rank: what it has written, and its stripe. Since when that has not changed.
  std::vector<std::pair<uint64_t, StateStripe>> written_;
  TimePoint written_at_;
  /// Of the whole state, as each holder has it; 0: it has made none.
  std::vector<uint64_t> digests_;
  uint64_t number_ = 0;
  TimePoint checkpoint_at_;
  std::vector<std::string> unused_;
};

}  // namespace muster
