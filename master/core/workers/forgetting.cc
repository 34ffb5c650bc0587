#include "master/core/workers/forgetting.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"

namespace muster {
Forgetting::Forgetting(MasterIncarnation incarnation, Shards committed)
    : base_(incarnation, 0), recovered_(std::move(committed)) {}

void Forgetting::OnLeased(const ShardId& shard, LeaseToken token) {
  MUSTER_CHECK(token != LeaseToken());
  MUSTER_CHECK_MSG(!IsForgotten(shard), ToString(shard));
  RunMap& tokens = newest_[{shard.dataset, shard.epoch}];
  const LeaseToken before =
      LeaseToken::FromValue(tokens.Find(shard.index.value()).value_or(LeaseToken().value()));
  // A re-asserted lease may be older than a later lease of its shard, whose parts may still arrive.
  const LeaseToken newest = std::max(before, token);
  MUSTER_CHECK_MSG(newest >= before, ToString(shard));
  tokens.Set(shard.index.value(), newest.value());
}

bool Forgetting::IsForgotten(const ShardId& shard) const {
  const auto shards = state_.shards.find({shard.dataset, shard.epoch});
  return shards != state_.shards.end() && shards->second.Contains(shard.index.value());
}

void Forgetting::OnCommitted(const ShardId& shard) {
  const std::pair<DatasetId, EpochIndex> epoch{shard.dataset, shard.epoch};
  const uint64_t index = shard.index.value();
  std::optional<uint64_t> token;
  if (const auto leased = newest_.find(epoch); leased != newest_.end()) {
    token = leased->second.Take(index);
    if (leased->second.empty()) newest_.erase(leased);
  }
  if (!token.has_value() || *token <= base_.value()) {
    recovered_[epoch].Add(index);
  } else {
    waiting_[epoch].Set(*token, index);
  }
}

bool Forgetting::ForgetRecovered(LeaseToken floor) {
  if (base_ >= floor || recovered_.empty()) return false;
  for (const auto& [epoch, shards] : recovered_) {
    for (const auto& [begin, end] : shards.intervals()) state_.shards[epoch].Add(begin, end);
  }
  recovered_.clear();
  return true;
}

bool Forgetting::ForgetWaiting(LeaseToken floor) {
  bool any = false;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    // The tokens of other shards may still be in use.
    for (const RunMap::Run& run : at->second.TakeBelow(floor.value())) {
      IntervalSet& forgotten = state_.shards[at->first];
      const uint64_t shards = run.end - run.begin;
      const uint64_t before = forgotten.count();
      forgotten.Add(run.value, run.value + shards);
      MUSTER_CHECK(run.end <= floor.value() && forgotten.count() == before + shards);
      any = true;
    }
    at = at->second.empty() ? waiting_.erase(at) : std::next(at);
  }
  return any;
}

void Forgetting::Update(LeaseToken floor) {
  // Rule 3.7.
  const bool recovered = ForgetRecovered(floor);
  const bool changed = ForgetWaiting(floor) || recovered;
  // A restored partition may not know what it was told earlier.
  const bool again = restored_ && !state_.shards.empty();
  restored_ = false;
  if (!changed && !again) return;
  // All tokens of earlier masters have ended before anything is forgotten.
  MUSTER_CHECK(!changed || base_ < floor);
  MUSTER_CHECK(floor >= state_.floor);
  state_.floor = floor;
  state_.version = LeaseToken(base_.incarnation(), ++versions_).value();
}

}  // namespace muster
