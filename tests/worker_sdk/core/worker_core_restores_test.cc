#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>

#include "tests/worker_sdk/core/core_fixture.h"
#include "worker_sdk/core/worker_core.h"

/// One worker and one long shard, of which every minibatch touches every partition, while one of
/// the two servers comes back from its newest snapshot again and again.
namespace muster::sdk {
namespace {

using wire::PartCode;

constexpr uint32_t kShardMinibatches = 40;
const ShardId kShard{DatasetId(0), EpochIndex(0), ShardIndex(0)};
const LeaseToken kToken(MasterIncarnation(1), 1);

class FlappingServer {
 public:
  /// A snapshot and a restart after so many minibatches each.
  FlappingServer(uint32_t snapshot_every, uint32_t restart_every)
      : snapshot_every_(snapshot_every),
        restart_every_(restart_every),
        core_({"worker-0", 9, 1, std::chrono::milliseconds(500)}) {
    WorkerExchangeReply reply;
    reply.grants = {{kShard, kToken, map_.restore_epoch, {}}};
    Exchange(std::move(reply));
  }

  /// Runs until the shard is DONE or so many minibatches have been handed out; returns how many
  /// were.
  uint32_t Train(uint32_t handed_out_max) {
    while (!done_ && handed_out_ < handed_out_max) {
      if (const std::optional<ShardRun> run = core_.TakeShard()) RunOnce(*run);
      Deliver();
      Exchange({});
    }
    return handed_out_;
  }
  bool done() const { return done_; }
  /// How often each part was applied to the present rows is 1 for all.
  bool EverythingIsInTheRows() const {
    for (const std::set<uint32_t>& rows : rows_) {
      if (rows.size() != kShardMinibatches) return false;
    }
    return true;
  }

 private:
  void RunOnce(const ShardRun& run) {
    for (uint32_t m = 0; m < kShardMinibatches; ++m) {
      if (!run.Has(MinibatchIndex(m))) continue;
      core_.StartMinibatch(kToken, run.run);
      core_.CommitMinibatch(kToken, run.run, MinibatchIndex(m), BatchOfAllPartitions(), now_);
      Deliver();
      ++handed_out_;
      if (handed_out_ % snapshot_every_ == 0) saved_ = rows_;
      if (handed_out_ % restart_every_ == 0) Restart();
    }
    core_.CompleteShard(kToken, run.run, {});
  }

  void Deliver() {
    now_ += std::chrono::seconds(1);
    for (const SendRequest& request : core_.Flush(now_)) {
      std::vector<wire::PartReply> replies;
      for (const SendRequest::Item& item : request.items) {
        const PlanPart& part = request.batch->plan.parts[item.part];
        replies.push_back({part.partition.value(), Apply(part, item.epoch, *request.push)});
      }
      core_.OnReply(request, replies, {}, "", now_);
    }
  }
  PartCode Apply(const PlanPart& part, OwnerEpoch epoch, const PushIdentity& push) {
    const uint32_t p = part.partition.value();
    if (map_.partitions[p].epoch != epoch) return PartCode::kWrongOwner;
    if (part.group_count == 0 && !rows_[p].contains(push.minibatch.value())) {
      return PartCode::kMissing;
    }
    rows_[p].insert(push.minibatch.value());
    return PartCode::kOk;
  }

  void Restart() {
    const uint64_t restore_epoch = map_.restore_epoch.value() + 1;
    map_ = RestoredMap(restore_epoch, {0, 2, 4, 6});
    for (const uint32_t p : {0u, 2u, 4u, 6u}) rows_[p] = saved_[p];
    Exchange({});
  }

  void Exchange(WorkerExchangeReply reply) {
    reply.master_incarnation = MasterIncarnation(1);
    for (const DoneReport& done : core_.BeginExchange({}, now_).done) {
      done_ = done.restore_epoch == map_.restore_epoch;
      reply.verdicts.push_back({kShard, kToken, done.run,
                                done_ ? DoneCode::kAccepted : DoneCode::kReverify,
                                map_.restore_epoch});
    }
    reply.map = map_;
    core_.OnExchangeReply(reply, now_);
  }

  const uint32_t snapshot_every_, restart_every_;
  WorkerCore core_;
  TimePoint now_{std::chrono::seconds(100)};
  PartitionMap map_ = MapOf(1, 1);
  std::array<std::set<uint32_t>, kPartitions> rows_, saved_;
  uint32_t handed_out_ = 0;
  bool done_ = false;
};

TEST(WorkerCoreRestoresTest, AShardLongerThanTheTimeBetweenTwoRestoresGetsThrough) {
  FlappingServer world(/*snapshot_every=*/4, /*restart_every=*/10);
  const uint32_t handed_out = world.Train(100 * kShardMinibatches);
  EXPECT_TRUE(world.done()) << "after " << handed_out << " minibatches";
  EXPECT_TRUE(world.EverythingIsInTheRows());
  EXPECT_LT(handed_out, 2 * kShardMinibatches);
}

TEST(WorkerCoreRestoresTest, WithoutSnapshotsNothingIsTakenForDone) {
  FlappingServer world(/*snapshot_every=*/1'000'000, /*restart_every=*/10);
  world.Train(20 * kShardMinibatches);
  EXPECT_FALSE(world.done());
}

}  // namespace
}  // namespace muster::sdk
