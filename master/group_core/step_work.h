#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "master/group_core/group_books.h"
#include "proto/messages/group_control.h"
#include "sharding/step_shares.h"

namespace muster {

/// The step in work: its shard, the token of the attempt, and which member computes which
/// minibatches.
///
/// Owns the tokens of the attempts of this step, to find the shard of a crash. Pure; not
/// thread-safe.
class StepInWork {
 public:
  /// `books` outlives it.
  explicit StepInWork(GroupBooks* books) : books_(books) {}

  bool any() const { return data_.has_value(); }
  const StepData& data() const { return *data_; }
  LeaseToken token() const { return token_; }
  /// The token of the first attempt at this shard: it names the work over all its attempts.
  LeaseToken begun() const { return begun_; }
  /// By rank.
  const std::vector<ShareRanges>& shares() const { return shares_; }
  /// The shard of the step has become FAILED, so the step needs another one.
  bool HasLostData() const { return any() && !books_->data->IsOpen(data_->shard); }

  /// Begins the next step, if there is data for it and enough members stay. Requires !any().
  void Begin();
  /// The step is tried again by the members of a new attempt, who were `former` before. Those who
  /// stay keep their minibatches, because they may have computed them.
  void Retry(const std::vector<GroupProcess>& former);
  /// Too few members are left to work on it. Later ones begin it anew.
  void Pause();
  /// The step has happened, or never will.
  void End();
  /// Counts a failure of the shard that was in work under this token.
  void Charge(LeaseToken token, const GroupProcess& process, std::string_view reason);

 private:
  void Clear();
  bool HasMembers() const;
  void Take(StepData data);
  std::vector<uint64_t> QuotasOfMembers() const;

  GroupBooks* const books_;
  std::optional<StepData> data_;
  LeaseToken token_, begun_;
  std::vector<ShareRanges> shares_;
  /// Of all attempts of this step.
  std::map<LeaseToken, ShardId> tokens_;
};

}  // namespace muster
