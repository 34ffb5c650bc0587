#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "proto/control.pb.h"
#include "proto/fields/generated.h"
#include "proto/messages/worker_hello.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "worker_sdk/core/worker_core.h"

namespace muster::testing {
namespace {

using Run = std::pair<LeaseToken, RunNumber>;

/// A worker, and books of what it may hold and say, whatever masters answer.
class Worker {
 public:
  void Take(uint64_t how) {
    const std::optional<sdk::ShardRun> shard = core_.TakeShard();
    if (!shard.has_value()) return;
    const LeaseToken token = shard->grant.token;
    const auto lease = leases_.find(token);
    MUSTER_CHECK_MSG(lease != leases_.end(), "a shard that was not granted, or was lost");
    MUSTER_CHECK(lease->second.shard == shard->grant.shard && lease->second.run == shard->run);
    MUSTER_CHECK_MSG(taken_.emplace(token, shard->run).second, "a run that begins twice");
    MUSTER_CHECK(core_.Holds(token, shard->run) && core_.StartMinibatch(token, shard->run));
    if (how == 0) {
      core_.CompleteShard(token, shard->run, {});
      completed_.emplace(token, shard->run);
    } else if (how == 1) {
      core_.GiveUp(token, shard->run);
      leases_.erase(token);
    }
  }

  void Exchange(std::string_view answer, TimePoint now) {
    if (core_.NextExchange(now) > now) return;
    const WorkerExchangeRequest request = core_.BeginExchange({}, now);
    CheckRequest(request);
    CheckSurvives(request);
    const auto reply = fields::Decode<WorkerExchangeReply>(answer);
    if (!reply.ok()) return core_.OnExchangeFailed(now);
    core_.OnExchangeReply(*reply, now);
    if (reply->master_incarnation < master_) return;  // as if it had not come
    Note(*reply);
  }

 private:
  void CheckRequest(const WorkerExchangeRequest& request) {
    MUSTER_CHECK(request.sequence == ++sequence_);
    MUSTER_CHECK(request.map_version >= map_version_ && request.newest_grant >= newest_grant_);
    MUSTER_CHECK(request.map_base == request.map_version || request.map_base == MapVersion());
    map_version_ = request.map_version;
    newest_grant_ = request.newest_grant;
    MUSTER_CHECK(!core_.draining() || request.want == 0);
    std::map<LeaseToken, RunNumber> held;
    for (const HeldLease& lease : request.held) {
      const auto known = leases_.find(lease.token);
      MUSTER_CHECK_MSG(known != leases_.end(), "holds what was not granted, or was lost");
      MUSTER_CHECK(known->second.shard == lease.shard && known->second.run == lease.run);
      MUSTER_CHECK_MSG(held.emplace(lease.token, lease.run).second, "holds a lease twice");
    }
    // As long as it stays, nothing is forgotten that it has not spoken of.
    MUSTER_CHECK(core_.draining() || held.size() == leases_.size());
    for (const DoneReport& done : request.done) {
      MUSTER_CHECK_MSG(completed_.contains({done.token, done.run}), "done, and was not completed");
      MUSTER_CHECK(held.contains(done.token) && held[done.token] == done.run);
    }
    for (const ReturnedLease& returned : request.returned) {
      MUSTER_CHECK_MSG(!held.contains(returned.token), "handed back, and held");
    }
  }

  /// The master reads what the worker wrote.
  static void CheckSurvives(const WorkerExchangeRequest& request) {
    const std::string bytes = fields::Encode(request);
    v1::WorkerExchangeRequest message;
    MUSTER_CHECK(message.ParseFromString(bytes));
    const auto read = FromProto<WorkerExchangeRequest>(message);
    MUSTER_CHECK_MSG(read.ok(), read.status().ToString());
    MUSTER_CHECK(fields::Encode(*read) == bytes);
  }

  void Note(const WorkerExchangeReply& reply) {
    master_ = reply.master_incarnation;
    for (const LeaseToken token : reply.lost) leases_.erase(token);
    for (const DoneVerdict& verdict : reply.verdicts) {
      const auto lease = leases_.find(verdict.token);
      if (lease == leases_.end() || lease->second.run != verdict.run) continue;
      if (!completed_.contains({verdict.token, verdict.run})) continue;
      // Nothing was pushed, so a restore has undone nothing: verified again, it is the same run.
      if (verdict.code != DoneCode::kReverify) leases_.erase(lease);
    }
    LeaseToken newest = granted_;
    for (const ShardGrant& grant : reply.grants) {
      if (grant.token > granted_) leases_.try_emplace(grant.token, Known{grant.shard, {}});
      newest = std::max(newest, grant.token);
    }
    granted_ = newest;
    if (reply.directive == JobDirective::kEnd) {
      MUSTER_CHECK(core_.ended() && core_.idle() && !core_.TakeShard().has_value());
      leases_.clear();
    }
  }

  sdk::WorkerCore core_{{.worker = "worker-0", .incarnation = 7}};
  struct Known {
    ShardId shard;
    RunNumber run;
  };
  std::map<LeaseToken, Known> leases_;  // granted, and not ended as far as it was told
  std::set<Run> taken_, completed_;
  LeaseToken granted_, newest_grant_;
  MapVersion map_version_;
  MasterIncarnation master_;
  uint64_t sequence_ = 0;
};

}  // namespace

void FuzzMasterAnswers(std::string_view bytes) {
  FuzzInput input(bytes);
  Worker worker;
  TimePoint now{std::chrono::seconds(1)};
  while (!input.empty()) {
    const uint64_t kind = input.Number(1) % 8;
    const std::string_view message = input.Sized();
    if (kind == 0) {
      (void)fields::Decode<HelloResponse>(message);
    } else if (kind == 1) {
      (void)fields::Decode<RegisterTableResponse>(message);
    } else if (kind == 2) {
      worker.Take(message.size() % 3);
    } else {
      worker.Exchange(message, now);
    }
    now += std::chrono::seconds(2);
  }
}

}  // namespace muster::testing
