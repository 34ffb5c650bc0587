#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/env.h"
#include "tests/sim/worker_link.h"
#include "tests/sim/worker_process.h"
#include "worker_sdk/core/worker_core.h"

namespace muster::sim {

/// A trainer's process: the real WorkerCore with its link to the others, and a trainer with several
/// loops, which prefetch rows, commit minibatches and sometimes misbehave.
class SimWorker final : public WorkerProcess {
 public:
  SimWorker(Env* env, ProcessRef process, uint32_t slot, uint64_t start,
            const TrainerFaults& faults);

  void Start() override;
  const ProcessRef& process() const override { return process_; }
  void Hang() override;
  const SlotFile& slot_file() const override { return slot_file_; }
  bool told_to_stop() const override { return told_to_stop_; }

 private:
  struct Pull {
    sdk::DeliveryId id;
    std::shared_ptr<const sdk::RowBatch> batch;
    std::vector<BatchRows> wanted;
    std::shared_ptr<const PartitionMap> map;  // when it began
  };
  enum class State { kIdle, kReading, kPulling, kComputing, kAcknowledging, kEnded };
  struct Loop {
    State state = State::kIdle;
    std::optional<sdk::ShardRun> run;
    uint32_t next = 0;      // minibatch
    uint32_t prepared = 0;  // minibatches whose pulls were started
    std::deque<Pull> pulls;
    std::vector<SeenRow> seen;  // of a predict shard
    bool hung = false;
  };

  TimePoint Now() const { return process_->Local(env_->scheduler.now()); }
  void After(nanoseconds delay, std::function<void()> action) {
    env_->scheduler.After(delay, process_, std::move(action));
  }
  nanoseconds Some(nanoseconds max) {
    return nanoseconds(rng_.Below(static_cast<uint64_t>(max.count()) + 1));
  }
  bool Misbehaves(uint64_t chance) { return env_->faulty && rng_.Below(1000) < chance; }
  static ShardId ShardOf(const Loop& loop) { return loop.run->grant.shard; }

  void Hello();
  void Greeted();
  void BeginLoops();
  void Told(const WorkerExchangeReply& reply);
  void Fail();
  // The trainer.
  /// After every event: all loops that can continue do so, and the results are sent.
  void Pump();
  bool Advance(Loop* loop);
  bool TakeShard(Loop* loop);
  void Publish(Loop* loop);
  /// When the shard's records have been read.
  void BeginShard(Loop* loop);
  void ReadShard(Loop* loop);
  /// The stream's range that the loop is in; null: a file.
  static const StreamWork* StreamOf(const Loop& loop);
  static uint32_t MinibatchesOf(const Loop& loop);
  TrainBatch BatchOf(const Loop& loop, uint32_t minibatch) const;
  void NextMinibatch(Loop* loop);
  void PrepareAhead(Loop* loop);
  void Compute(Loop* loop);
  void EndMinibatch(Loop* loop);
  void LeaveShard(Loop* loop);
  void CheckRows(Loop* loop, const Pull& pull, const sdk::PullRows& rows);
  void CheckTensor(const Pull& pull, size_t table, const sdk::Tensor& tensor);
  void Finish();

  Env* const env_;
  const ProcessRef process_;
  const uint32_t slot_;
  const uint64_t start_;
  const TrainerFaults faults_;
  Rng rng_;
  WorkerLink link_;
  std::string name_;
  sdk::WorkerCore* core_ = nullptr;  // of link_, when it is open
  std::vector<Loop> loops_;
  SlotFile slot_file_;
  bool late_registered_ = false;
  bool told_to_stop_ = false;
  bool failed_ = false;
  bool finishing_ = false;
  bool pumping_ = false;
};

}  // namespace muster::sim
