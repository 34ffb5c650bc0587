#include "master/core/workers/lease_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {

void LeaseTable::Add(Lease lease) {
  const LeaseToken token = lease.token;
  MUSTER_CHECK(token != LeaseToken());
  MUSTER_CHECK(by_shard_.emplace(lease.shard, token).second);
  MUSTER_CHECK(by_worker_[lease.worker].insert(token).second);
  MUSTER_CHECK(lease.evaluate || train_.insert(token).second);
  MUSTER_CHECK(lease.phase == LeasePhase::kQueued || begun_.insert(token).second);
  lease.progress_at = lease.granted_at;
  MUSTER_CHECK(leases_.emplace(token, std::move(lease)).second);
  MUSTER_CHECK(leases_.size() == by_shard_.size());
}

Lease* LeaseTable::Find(LeaseToken token) {
  auto it = leases_.find(token);
  return it == leases_.end() ? nullptr : &it->second;
}

const Lease* LeaseTable::FindShard(const ShardId& shard) const {
  auto it = by_shard_.find(shard);
  return it == by_shard_.end() ? nullptr : &leases_.at(it->second);
}

bool LeaseTable::Update(const HeldLease& held, TimePoint now) {
  auto it = leases_.find(held.token);
  MUSTER_CHECK(it != leases_.end());
  Lease& lease = it->second;
  MUSTER_CHECK_MSG(lease.shard == held.shard, ToString(lease.shard));
  if (lease.run == held.run && lease.phase == held.phase &&
      lease.minibatches_started == held.minibatches_started) {
    return false;
  }
  lease.run = held.run;
  lease.phase = held.phase;
  lease.minibatches_started = held.minibatches_started;
  lease.progress_at = now;
  if (held.phase == LeasePhase::kQueued) {
    begun_.erase(held.token);
  } else {
    begun_.insert(held.token);
  }
  return true;
}

void LeaseTable::OnRestored(TimePoint now) {
  for (LeaseToken token : begun_) {
    Lease& lease = leases_.at(token);
    if (lease.phase == LeasePhase::kPushing) lease.progress_at = std::max(lease.progress_at, now);
  }
}

Lease LeaseTable::Remove(LeaseToken token) {
  auto it = leases_.find(token);
  MUSTER_CHECK(it != leases_.end());
  Lease lease = std::move(it->second);
  leases_.erase(it);
  MUSTER_CHECK(by_shard_.erase(lease.shard) == 1);
  MUSTER_CHECK(train_.erase(token) == (lease.evaluate ? 0u : 1u));
  MUSTER_CHECK(begun_.erase(token) == (lease.phase == LeasePhase::kQueued ? 0u : 1u));
  auto worker = by_worker_.find(lease.worker);
  MUSTER_CHECK(worker != by_worker_.end() && worker->second.erase(token) == 1);
  if (worker->second.empty()) by_worker_.erase(worker);
  MUSTER_CHECK(leases_.size() == by_shard_.size());
  return lease;
}

std::vector<LeaseToken> LeaseTable::TokensOf(const WorkerKey& worker) const {
  auto it = by_worker_.find(worker);
  if (it == by_worker_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

size_t LeaseTable::CountOf(const WorkerKey& worker) const {
  auto it = by_worker_.find(worker);
  return it == by_worker_.end() ? 0 : it->second.size();
}

bool LeaseTable::Holds(const std::string& worker) const {
  const auto it = by_worker_.lower_bound({worker, 0});
  return it != by_worker_.end() && it->first.name == worker;
}

std::vector<LeaseToken> LeaseTable::BegunWithoutProgressSince(TimePoint then) const {
  std::vector<LeaseToken> tokens;
  for (LeaseToken token : begun_) {
    if (leases_.at(token).progress_at <= then) tokens.push_back(token);
  }
  return tokens;
}

void LeaseTable::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  for (LeaseToken token : begun_) {
    Lease& lease = leases_.at(token);
    lease.progress_at = std::min(lease.progress_at + gap, now);
  }
}

std::optional<LeaseToken> LeaseTable::OldestTrain() const {
  if (train_.empty()) return std::nullopt;
  return *train_.begin();
}

}  // namespace muster
