// The steps of a group, among random restores, snapshots, checkpoints and rollbacks of a model of
// the partitions: what is COMMITTED is in every snapshot that counts, what is DONE is in every
// partition or is replayed, and in the end nothing is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "master/core/group_job/group_shards.h"
#include "tests/master/core/parts_fixture.h"
#include "tests/support/seeds.h"

namespace muster {
namespace {

using testing::TrainShard;

constexpr uint64_t kSteps = 12;
constexpr ServerId kOnly{0};

struct TableProbes {
  uint64_t replays = 0, repeated = 0, lost_in_step = 0, undone = 0, refused = 0, waited = 0;
};

/// The shards of which a partition has all parts.
using Rows = std::set<ShardId>;

class TablesWorld : protected testing::PartsFixture {
 public:
  TablesWorld(uint64_t seed, TableProbes* probes) : rng_(seed), probes_(probes) {
    options.group.emplace();
    options.datasets[0].shards = kSteps;
    options.datasets[0].records = 10 * kSteps;
    Start();
    group_shards().SetTime(At());
    ReplaceServer();
  }

  /// What is wrong; empty: nothing.
  std::string Run() {
    for (int i = 0; i < 150 && wrong_.empty() && !group_shards().Over(); ++i) {
      Act();
      Check();
    }
    for (int i = 0; i < 10 && wrong_.empty() && !group_shards().Over(); ++i) {
      while (Work(/*faults=*/false)) {
      }
      Checkpoint(0);
      AskSnapshots();
      WriteSnapshots();
      TakeSnapshots();
      Check();
    }
    if (wrong_.empty() && !group_shards().Over()) wrong_ = "the job does not end";
    return wrong_;
  }

 private:
  struct Written {
    SnapshotReport report;
    Rows rows;
  };

  void Act() {
    switch (rng_.Below(10)) {
      case 0:
        return ReplaceServer();
      case 1:
        return LosePartition();
      case 2:
        return Checkpoint(rng_.Below(after_ + 1));
      case 3:
        return Undo(rng_.Below(after_ + 1));
      case 4:
        return AskSnapshots();
      case 5:
        return WriteSnapshots();
      case 6:
        return TakeSnapshots();
      default:
        Work(/*faults=*/true);
    }
  }

  /// A step or a replay. With faults, partitions may be restored in its middle.
  bool Work(bool faults) {
    const std::optional<StepData> next = group_shards().Next();
    if (!next.has_value()) return false;
    const bool evaluation = books().ledger.IsEvaluate(next->shard);
    const LeaseToken token = group_shards().NewToken(next->shard);
    const RestoreEpoch under = books().partitions.restore_epoch();
    for (Rows& rows : rows_) {
      if (faults && rng_.Below(8) == 0) Restore();
      if (!evaluation) rows.insert(next->shard);
    }
    if (faults && rng_.Below(8) == 0) Restore();
    // The attempt fails.
    if (faults && rng_.Below(6) == 0) return true;
    const bool old = under != books().partitions.restore_epoch();
    if (next->replay) {
      probes_->replays += 1;
      probes_->repeated += old ? 1 : 0;
      group_shards().Replayed(next->shard, under);
      return true;
    }
    probes_->lost_in_step += old ? 1 : 0;
    group_shards().Commit(next->shard, token, {}, "worker-0", evaluation ? RestoreEpoch() : under);
    ++after_;
    return true;
  }

  void Restore() { rng_.Below(2) == 0 ? ReplaceServer() : LosePartition(); }
  void ReplaceServer() {
    owner_ = owner_.Next();
    rows_ = saved_;
    snapshots().Replay(books().partitions.ServerReplaced(kOnly, owner_), "test", At());
    books().partitions.Reported(kOnly, owner_, ServerCall(owner_, 1).owned);
  }
  void LosePartition() {
    const auto id = static_cast<uint32_t>(rng_.Below(2));
    rows_[id] = saved_[id];
    const OwnerEpoch epoch = books().partitions.entry(PartitionId(id)).epoch;
    snapshots().Replay(books().partitions.Missing(kOnly, owner_, {PartitionId(id), epoch}), "test",
                       At());
    books().partitions.Reported(kOnly, owner_, ServerCall(owner_, 1).owned);
  }
  void Checkpoint(uint64_t kept) {
    after_ = kept;
    group_shards().Checkpointed(kept);
  }
  void Undo(uint64_t count) {
    probes_->undone += count;
    after_ -= count;
    group_shards().Undo(count);
  }
  void AskSnapshots() {
    now += options.snapshot_timeout;
    snapshots().Ask(kOnly, owner_, {.all = true}, now);
  }
  /// The server writes what it was asked for, and reports it later.
  void WriteSnapshots() {
    ServerExchangeReply reply;
    books().partitions.FillCommands(kOnly, owner_, &reply);
    for (const SnapshotReport& report : PartsFixture::Written(reply.snapshots)) {
      written_.push_back({report, rows_[report.partition.value()]});
    }
  }
  void TakeSnapshots() {
    for (const Written& written : written_) {
      const PartitionId id = written.report.partition;
      ServerExchangeRequest request = ServerCall(owner_, 1);
      request.snapshots = {written.report};
      const SnapshotNumber before = books().partitions.manifest(id).number;
      snapshots().Take(request, At());
      const bool taken = books().partitions.manifest(id).number != before;
      if (taken) saved_[id.value()] = written.rows;
      probes_->refused += taken ? 0 : 1;
    }
    written_.clear();
  }

  void Check() {
    const ShardQueue& queue = books().ledger.queue();
    for (uint64_t i = 0; i < kSteps; ++i) {
      const ShardId shard = TrainShard(i);
      const ShardState state = queue.StateOf(shard);
      const bool done = state == ShardState::kDone;
      if (done && books().ledger.checkpointed() >= queue.FindDone(shard)->seq) ++probes_->waited;
      for (size_t p = 0; p < rows_.size(); ++p) {
        if (state == ShardState::kCommitted && !saved_[p].contains(shard)) {
          wrong_ = "COMMITTED, but not in the snapshot: " + ToString(shard);
        }
        if (done && !books().ledger.LacksParts(shard) && !rows_[p].contains(shard)) {
          wrong_ = "lost, and not to be replayed: " + ToString(shard);
        }
      }
    }
    if (books().ledger.done_after_checkpoint() != after_) wrong_ = "steps after the checkpoint";
  }

  Rng rng_;
  TableProbes* const probes_;
  ServerIncarnation owner_{5};
  std::array<Rows, 2> rows_, saved_;
  std::vector<Written> written_;
  /// Steps that no checkpoint has.
  uint64_t after_ = 0;
  std::string wrong_;
};

TEST(GroupTablesRandomTest, NoPushIsLost) {
  TableProbes probes;
  for (uint64_t seed = 1; seed <= testing::Seeds(3'000); ++seed) {
    ASSERT_EQ(TablesWorld(seed, &probes).Run(), "") << "seed " << seed;
  }
  // The rare paths ran.
  EXPECT_GT(probes.replays, 0u);
  EXPECT_GT(probes.repeated, 0u);
  EXPECT_GT(probes.lost_in_step, 0u);
  EXPECT_GT(probes.undone, 0u);
  EXPECT_GT(probes.refused, 0u);
  EXPECT_GT(probes.waited, 0u);
}

}  // namespace
}  // namespace muster
