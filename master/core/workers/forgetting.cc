#include "master/core/workers/forgetting.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"

namespace muster {

Forgetting::Forgetting(MasterIncarnation incarnation, Shards committed)
    : base_(incarnation, 0), recovered_(std::move(committed)) {}

LeaseToken Forgetting::EarlierTokens() const {
  return MUSTER_PLANTED(kEarlierTokens) ? LeaseToken() : base_;
}

void Forgetting::OnLeased(const ShardId& shard, LeaseToken token) {
  MUSTER_CHECK(token != LeaseToken());
  LeaseToken& newest = newest_[shard];
  newest = MUSTER_PLANTED(kNewestIsLast) ? token : std::max(newest, token);
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

void Forgetting::Update(LeaseToken floor) {
  bool changed = false;
  if (EarlierTokens() < floor && !recovered_.empty()) {
    for (const auto& [epoch, shards] : recovered_) {
      for (const auto& [begin, end] : shards.intervals()) state_.shards[epoch].Add(begin, end);
    }
    recovered_.clear();
    changed = true;
  }
  const auto last = MUSTER_PLANTED(kForgetAtCommit) ? waiting_.end() : waiting_.lower_bound(floor);
  for (auto it = waiting_.begin(); it != last; ++it) {
    const ShardId& shard = it->second;
    state_.shards[{shard.dataset, shard.epoch}].Add(shard.index.value());
    changed = true;
  }
  waiting_.erase(waiting_.begin(), last);
  const bool again = restored_ && !state_.shards.empty() && !MUSTER_PLANTED(kForgetOnce);
  restored_ = false;
  if (!changed && !again) return;
  MUSTER_CHECK(floor >= state_.floor || MUSTER_WEAKENED(kBusyGrace) ||
               MUSTER_WEAKENED(kRevivedLease) || MUSTER_PLANTED(kTokensAgain) ||
               MUSTER_PLANTED(kDoneWithoutLease));
  state_.floor = floor;
  state_.version = LeaseToken(base_.incarnation(), ++versions_).value();
}

}  // namespace muster
