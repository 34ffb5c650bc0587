#include "master/core/workers/forgetting.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"

namespace muster {

Forgetting::Forgetting(MasterIncarnation incarnation, Shards committed,
                       std::vector<uint64_t> epoch_shards)
    : epoch_shards_(std::move(epoch_shards)),
      base_(incarnation, 0),
      recovered_(std::move(committed)) {}

void Forgetting::OnLeased(const ShardId& shard, LeaseToken token) {
  MUSTER_CHECK(token != LeaseToken());
  MUSTER_CHECK_MSG(!state_.Contains(shard), ToString(shard));
  RunMap& tokens = newest_[{shard.dataset, shard.epoch}];
  const LeaseToken before =
      LeaseToken::FromValue(tokens.Find(shard.index.value()).value_or(LeaseToken().value()));
  // A re-asserted lease may be older than a later lease of its shard, whose parts may still arrive.
  const LeaseToken newest = std::max(before, token);
  MUSTER_CHECK_MSG(newest >= before, ToString(shard));
  tokens.Set(shard.index.value(), newest.value());
}

void Forgetting::Forget(const std::pair<DatasetId, EpochIndex>& epoch, uint64_t begin,
                        uint64_t end) {
  IntervalSet& forgotten = state_.shards[epoch];
  const uint64_t before = forgotten.count();
  forgotten.Add(begin, end);
  MUSTER_CHECK(forgotten.count() == before + (end - begin));
  const uint64_t shards = epoch_shards_[epoch.first.value()];
  if (shards == 0 || forgotten.count() < shards) return;
  MUSTER_CHECK(forgotten.count() == shards);
  state_.epochs[epoch.first].Add(epoch.second.value());
  state_.shards.erase(epoch);
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
    recovered_.shards[epoch].Add(index);
  } else {
    waiting_[epoch].Set(*token, index);
  }
}

bool Forgetting::ForgetRecovered(LeaseToken floor) {
  if (base_ >= floor || recovered_.empty()) return false;
  for (const auto& [dataset, epochs] : recovered_.epochs) {
    for (const auto& [begin, end] : epochs.intervals()) state_.epochs[dataset].Add(begin, end);
  }
  for (const auto& [epoch, shards] : recovered_.shards) {
    for (const auto& [begin, end] : shards.intervals()) Forget(epoch, begin, end);
  }
  recovered_ = {};
  return true;
}

bool Forgetting::ForgetWaiting(LeaseToken floor) {
  bool any = false;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    // The tokens of other shards may still be in use.
    for (const RunMap::Run& run : at->second.TakeBelow(floor.value())) {
      MUSTER_CHECK(run.end <= floor.value());
      Forget(at->first, run.value, run.value + (run.end - run.begin));
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
  const bool again = restored_ && !state_.empty();
  restored_ = false;
  if (!changed && !again) return;
  // All tokens of earlier masters have ended before anything is forgotten.
  MUSTER_CHECK(!changed || base_ < floor);
  MUSTER_CHECK(floor >= state_.floor);
  state_.floor = floor;
  state_.version = LeaseToken(base_.incarnation(), ++versions_).value();
}

}  // namespace muster
