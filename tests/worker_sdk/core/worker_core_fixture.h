#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/core/core_fixture.h"
#include "worker_sdk/core/worker_core.h"

/// One core and what the master and the servers say to it.
namespace muster::sdk {
namespace worker_core_test {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using wire::PartCode;

inline LeaseToken Token(uint64_t count, uint64_t incarnation = 1) {
  return LeaseToken(MasterIncarnation(incarnation), count);
}

class WorkerCoreTest : public ::testing::Test {
 protected:
  WorkerCoreTest() : core_({"worker-0", 9, 2, milliseconds(500)}) {}

  static WorkerExchangeReply Reply(uint64_t incarnation = 1) {
    WorkerExchangeReply reply;
    reply.master_incarnation = MasterIncarnation(incarnation);
    return reply;
  }
  static ShardGrant Grant(uint64_t index, LeaseToken token, uint64_t restore = 1) {
    ShardGrant grant{
        {DatasetId(0), EpochIndex(0), ShardIndex(index)}, token, RestoreEpoch(restore), {}};
    grant.work.record_count = 4;
    grant.work.minibatch_size = 2;
    grant.work.first_step = 100;
    return grant;
  }
  WorkerExchangeRequest Exchange(const WorkerExchangeReply& reply) {
    WorkerExchangeRequest request = core_.BeginExchange({}, now_);
    core_.OnExchangeReply(reply, now_);
    now_ += milliseconds(10);
    return request;
  }
  /// Grants shard `index` and takes it.
  ShardRun GrantAndTake(uint64_t index, LeaseToken token) {
    WorkerExchangeReply reply = Reply();
    reply.map = MapOf(1, 1);
    reply.grants = {Grant(index, token)};
    Exchange(reply);
    return *core_.TakeShard();
  }
  void AnswerAll(PartCode code) {
    for (const SendRequest& request : core_.Flush(now_)) Answer(request, code);
  }
  void Answer(const SendRequest& request, PartCode code, std::string_view text = "") {
    std::vector<wire::PartReply> replies(request.items.size());
    for (auto& reply : replies) reply.code = code;
    core_.OnReply(request, replies, {}, text, now_);
  }
  bool Commit(const ShardRun& shard, uint32_t minibatch) {
    core_.StartMinibatch(shard.grant.token, shard.run);
    return core_.CommitMinibatch(shard.grant.token, shard.run, MinibatchIndex(minibatch),
                                 BatchOfAllPartitions(), now_);
  }
  void Complete(const ShardRun& shard) {
    ShardMetrics metrics;
    metrics.records = 4;
    core_.CompleteShard(shard.grant.token, shard.run, metrics);
  }
  DoneVerdict Verdict(const ShardRun& shard, DoneCode code, uint64_t restore = 1) {
    return {shard.grant.shard, shard.grant.token, shard.run, code, RestoreEpoch(restore)};
  }

  WorkerCore core_;
  TimePoint now_{std::chrono::seconds(100)};
};

}  // namespace worker_core_test
}  // namespace muster::sdk
