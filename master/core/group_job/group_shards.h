#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "master/core/books.h"
#include "master/core/job_life.h"
#include "master/core/servers/snapshots.h"
#include "master/core/workers/dones.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/leasing.h"
#include "master/group_core/group_data.h"

namespace muster {

/// The shards of the job as steps of a synchronous group. A step takes its shard from TODO to DONE
/// at once, so nothing is ever leased; a checkpoint makes DONE shards COMMITTED, as snapshots do in
/// other jobs. If the steps push to tables, a shard needs both, and is replayed if a restore of
/// partitions has taken parts of it away. Pure; not thread-safe.
class GroupShards final : public GroupData {
 public:
  /// All of them outlive it.
  GroupShards(const Books* books, Ledger* ledger, JobTotals* totals, Failures* failures,
              Leasing* leasing, Dones* dones, JobLife* life, Snapshots* snapshots)
      : books_(books),
        ledger_(ledger),
        totals_(totals),
        failures_(failures),
        leasing_(leasing),
        dones_(dones),
        life_(life),
        snapshots_(snapshots) {}

  /// The time of the step of the core that begins.
  void SetTime(StepTime at) { at_ = at; }

  std::optional<StepData> Next() override;
  bool IsOpen(const ShardId& shard) const override;
  LeaseToken NewToken(const ShardId& shard) override;
  void EndTokensBelow(LeaseToken floor) override { leasing_->SetFloorOfSteps(floor); }
  void Commit(const ShardId& shard, LeaseToken token, const ShardMetrics& metrics,
              const std::string& worker, RestoreEpoch pushed_under) override;
  void Replayed(const ShardId& shard, RestoreEpoch pushed_under) override;
  void Checkpointed(uint64_t kept) override;
  void Undo(uint64_t count) override;
  void Redelivered(uint64_t minibatches) override {
    totals_->redelivered_minibatches += minibatches;
  }
  bool NeedsCheckpoint() const override { return life_->NeedsSnapshots(); }
  void Charge(const ShardId& shard, LeaseToken token, const std::string& worker,
              uint64_t incarnation, std::string_view reason) override;
  std::optional<uint32_t> Workers() const override;
  bool Over() const override { return life_->over(); }
  void FailJob(std::string_view reason) override;
  void Say(MasterEventKind kind, const std::string& worker, std::string_view text) override {
    books_->Say(at_, kind, worker, text);
  }

 private:
  /// The seq of the DONE shard before the newest `count`.
  DoneSeq SeqBefore(uint64_t count) const;
  /// A trainer cannot replay the shard, which is DONE.
  void ChargeReplay(const ShardId& shard, LeaseToken token, const std::string& worker,
                    std::string_view reason);

  const Books* const books_;
  Ledger* const ledger_;
  JobTotals* const totals_;
  Failures* const failures_;
  Leasing* const leasing_;
  Dones* const dones_;
  JobLife* const life_;
  Snapshots* const snapshots_;
  StepTime at_;
  /// The first call says where the journal left off.
  bool told_checkpoint_ = false;
  struct ReplayFailures {
    LeaseToken charged;
    uint32_t count = 0;
  };
  /// Of shards that are replayed now. The weights have them, so they cannot become FAILED.
  std::map<ShardId, ReplayFailures> replay_failures_;
};

}  // namespace muster
