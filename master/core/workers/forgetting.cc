#include "master/core/workers/forgetting.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"

namespace muster {
namespace {

/// A lease that is re-asserted may be older than one that its shard had meanwhile, whose parts may
/// be on their way.
LeaseToken NewestOf(LeaseToken before, LeaseToken token) {
  return MUSTER_PLANTED(kNewestIsLast) ? token : std::max(before, token);
}

}  // namespace

Forgetting::Forgetting(MasterIncarnation incarnation, Shards committed)
    : base_(incarnation, 0), recovered_(std::move(committed)) {}

LeaseToken Forgetting::EarlierTokens() const {
  return MUSTER_PLANTED(kEarlierTokens) ? LeaseToken() : base_;
}

void Forgetting::OnLeased(const ShardId& shard, LeaseToken token) {
  MUSTER_CHECK(token != LeaseToken());
  MUSTER_CHECK_MSG(!IsForgotten(shard), ToString(shard));
  LeaseToken& newest = newest_[shard];
  const LeaseToken before = std::exchange(newest, NewestOf(newest, token));
  MUSTER_CHECK_MSG(newest >= before, ToString(shard));
}

bool Forgetting::IsForgotten(const ShardId& shard) const {
  const auto shards = state_.shards.find({shard.dataset, shard.epoch});
  return shards != state_.shards.end() && shards->second.Contains(shard.index.value());
}

void Forgetting::OnCommitted(const ShardId& shard) {
  const auto leased = newest_.find(shard);
  LeaseToken newest = EarlierTokens();
  if (leased != newest_.end()) {
    newest = std::max(newest, leased->second);
    newest_.erase(leased);
  }
  waiting_.emplace(newest, shard);
}

Forgetting::Waiting::const_iterator Forgetting::FirstToKeep(LeaseToken floor) const {
  return MUSTER_PLANTED(kForgetAtCommit) ? waiting_.end() : waiting_.lower_bound(floor);
}

bool Forgetting::MustTellAgain() const {
  return restored_ && !state_.shards.empty() && !MUSTER_PLANTED(kForgetOnce);
}

void Forgetting::Update(LeaseToken floor) {
  bool changed = false;
  if (EarlierTokens() < floor && !recovered_.empty()) {
    for (const auto& [epoch, shards] : recovered_) {
      for (const auto& [begin, end] : shards.intervals()) state_.shards[epoch].Add(begin, end);
    }
    recovered_.clear();
    changed = true;
  }
  const auto last = FirstToKeep(floor);
  for (auto it = waiting_.cbegin(); it != last; ++it) {
    const ShardId& shard = it->second;
    MUSTER_CHECK_MSG(it->first < floor && !IsForgotten(shard), ToString(shard));
    state_.shards[{shard.dataset, shard.epoch}].Add(shard.index.value());
    changed = true;
  }
  waiting_.erase(waiting_.cbegin(), last);
  const bool again = MustTellAgain();
  restored_ = false;
  if (!changed && !again) return;
  // Every token of an earlier master is over before anything is forgotten.
  MUSTER_CHECK(!changed || base_ < floor);
  MUSTER_CHECK(floor >= state_.floor || MUSTER_WEAKENED(kBusyGrace) ||
               MUSTER_WEAKENED(kRevivedLease));
  state_.floor = floor;
  state_.version = LeaseToken(base_.incarnation(), ++versions_).value();
}

}  // namespace muster
