// The trainer's half of SimWorker: its loops, and what they do wrong.
#include <algorithm>
#include <csignal>
#include <map>

#include "sharding/partition_of.h"
#include "tests/sim/sim_worker.h"
#include "worker_sdk/core/row_plan.h"

namespace muster::sim {

void SimWorker::Hang() {
  for (Loop& loop : loops_) {
    if (loop.state != State::kComputing || loop.hung) continue;
    loop.hung = true;
    env_->probes.Hit(Probe::kHungTrainer);
    env_->Say(*process_, "a loop hangs in shard {}", ToString(ShardOf(loop)));
    return;
  }
}

bool SimWorker::Advance(Loop* loop) {
  switch (loop->state) {
    case State::kIdle:
      return TakeShard(loop);
    case State::kPulling: {
      const sdk::ShardRun& run = *loop->run;
      const Pull& pull = loop->pulls.front();
      if (core_->PullReady(pull.id)) {
        CheckRows(loop, pull, core_->TakePull(pull.id));
      } else if (!failed_ && core_->Holds(run.grant.token, run.run)) {
        return false;
      } else {
        core_->CancelPull(pull.id);
      }
      loop->pulls.pop_front();
      loop->state = State::kComputing;
      After(Some(env_->knobs.compute_max), [this, loop] {
        Compute(loop);
        Pump();
      });
      return true;
    }
    case State::kAcknowledging: {
      const sdk::ShardRun& run = *loop->run;
      if (!failed_ && core_->Holds(run.grant.token, run.run) &&
          core_->outstanding_pushes() > env_->knobs.unacknowledged_max) {
        return false;
      }
      EndMinibatch(loop);
      return true;
    }
    default:
      return false;
  }
}

void SimWorker::Publish(Loop* loop) {
  const sdk::ShardRun& run = *loop->run;
  if (!failed_ && core_->SawAllPushes(run.grant.token, run.run)) {
    env_->oracle.OnPredicted(ShardOf(*loop), loop->seen);
    core_->CompleteShard(run.grant.token, run.run, Workload::MetricsOf(ShardOf(*loop)));
  } else {
    env_->probes.Hit(Probe::kNotPublished);
    core_->GiveUp(run.grant.token, run.run);
  }
  LeaveShard(loop);
}

bool SimWorker::TakeShard(Loop* loop) {
  if (failed_ || (core_->draining() && core_->queued() == 0)) {
    loop->state = State::kEnded;
    return true;
  }
  if (core_->queued() == 0) return false;
  loop->run = core_->TakeShard();
  if (!loop->run.has_value()) {
    loop->state = State::kEnded;
    return true;
  }
  slot_file_.token = loop->run->grant.token;
  slot_file_.shard = ShardOf(*loop);
  slot_file_.minibatches = 0;
  loop->state = State::kReading;
  loop->next = loop->prepared = 0;
  if (!loop->run->minibatches.empty()) env_->probes.Hit(Probe::kPartialRun);
  env_->Say(*process_, "begins shard {}, token {}, run {}", ToString(ShardOf(*loop)),
            ToString(slot_file_.token), loop->run->run.value());
  if (Workload::IsEvaluate(ShardOf(*loop)) && !env_->evaluated.insert(ShardOf(*loop)).second) {
    env_->probes.Hit(Probe::kEvaluateAgain);
  }
  After(Some(milliseconds(20)), [this, loop] { ReadShard(loop); });
  return true;
}

const StreamWork* SimWorker::StreamOf(const Loop& loop) {
  const std::optional<StreamWork>& stream = loop.run->grant.work.stream;
  return stream.has_value() ? &*stream : nullptr;
}

uint32_t SimWorker::MinibatchesOf(const Loop& loop) {
  const StreamWork* const stream = StreamOf(loop);
  return stream != nullptr ? Workload::MinibatchesOf(*stream)
                           : Workload::MinibatchesOf(ShardOf(loop));
}

TrainBatch SimWorker::BatchOf(const Loop& loop, uint32_t minibatch) const {
  const StreamWork* const stream = StreamOf(loop);
  const ShardId shard = ShardOf(loop);
  return stream != nullptr ? env_->workload.BatchOf(*stream, shard, MinibatchIndex(minibatch))
                           : env_->workload.BatchOf(shard, MinibatchIndex(minibatch));
}

void SimWorker::ReadShard(Loop* loop) {
  const StreamWork* const stream = StreamOf(*loop);
  if (stream == nullptr) return BeginShard(loop);
  const sdk::ShardRun& run = *loop->run;
  const bool held = !failed_ && core_->Holds(run.grant.token, run.run);
  if (held && !env_->topic.reachable()) {
    env_->probes.Hit(Probe::kStalledRead);
    return After(milliseconds(100), [this, loop] { ReadShard(loop); });
  }
  // COMMITTED by another worker, and gone since.
  const bool gone = std::ranges::any_of(stream->ranges, [this](const OffsetRange& range) {
    return env_->topic.begin(range.partition.value()) > range.begin;
  });
  if (!held || gone) {
    core_->GiveUp(run.grant.token, run.run, sdk::ShardFailure{"offsets are gone", false, true});
    LeaveShard(loop);
    return Pump();
  }
  BeginShard(loop);
}

void SimWorker::BeginShard(Loop* loop) {
  const size_t late = env_->workload.tables().size() - 1;
  if (ShardOf(*loop).epoch.value() == 0 || late_registered_) {
    NextMinibatch(loop);
    return Pump();
  }
  link_.RegisterTables(late, late + 1, [this, loop] {
    if (env_->journal.state().tables.size() > 3) env_->probes.Hit(Probe::kLateTable);
    late_registered_ = true;
    NextMinibatch(loop);
    Pump();
  });
}

void SimWorker::PrepareAhead(Loop* loop) {
  const ShardId shard = ShardOf(*loop);
  const uint32_t end = std::min(MinibatchesOf(*loop), loop->next + 1 + env_->knobs.prefetch);
  for (; loop->prepared < end; ++loop->prepared) {
    if (!loop->run->Has(MinibatchIndex(loop->prepared))) continue;
    Pull pull;
    pull.wanted = StreamOf(*loop) != nullptr
                      ? env_->workload.PullOf(BatchOf(*loop, loop->prepared))
                      : env_->workload.PullOf(shard, MinibatchIndex(loop->prepared));
    const auto dense = [](const BatchRows& rows) { return rows.table == kDense; };
    std::ranges::stable_sort(pull.wanted, {}, dense);
    pull.map = core_->map();
    std::vector<sdk::TableKeys> tables;
    std::vector<std::shared_ptr<const sdk::KeySet>> keys;
    for (const BatchRows& rows : pull.wanted) {
      tables.push_back({rows.table, rows.dim, rows.keys, dense(rows)});
      keys.push_back(std::make_shared<const sdk::KeySet>(sdk::MakeKeySet(rows.keys)));
    }
    pull.batch = sdk::MakePull(tables, keys, link_.order());
    pull.id = core_->StartPull(pull.batch, Now());
    loop->pulls.push_back(std::move(pull));
  }
}

void SimWorker::NextMinibatch(Loop* loop) {
  const sdk::ShardRun& run = *loop->run;
  const ShardId shard = ShardOf(*loop);
  const uint32_t minibatches = MinibatchesOf(*loop);
  while (loop->next < minibatches && !run.Has(MinibatchIndex(loop->next))) ++loop->next;
  if (loop->next == minibatches && Workload::IsPredict(shard)) return Publish(loop);
  if (loop->next == minibatches) {
    const StreamWork* const stream = StreamOf(*loop);
    const std::string not_pushed = core_->CompleteShard(
        run.grant.token, run.run,
        stream != nullptr ? Workload::MetricsOf(*stream) : Workload::MetricsOf(shard));
    // Every run of this workload pushes the same.
    if (!not_pushed.empty()) env_->oracle.Fail("not-pushed", not_pushed);
    return LeaveShard(loop);
  }
  PrepareAhead(loop);
  if (failed_ || !core_->StartMinibatch(run.grant.token, run.run)) {
    env_->probes.Hit(Probe::kLostWork);
    core_->GiveUp(run.grant.token, run.run);
    return LeaveShard(loop);
  }
  ++slot_file_.minibatches;
  loop->state = State::kPulling;
}

void SimWorker::LeaveShard(Loop* loop) {
  if (slot_file_.token == loop->run->grant.token) slot_file_.token = LeaseToken();
  for (const Pull& pull : loop->pulls) core_->CancelPull(pull.id);
  loop->pulls.clear();
  loop->seen.clear();
  loop->run.reset();
  loop->state = State::kIdle;
}

void SimWorker::Compute(Loop* loop) {
  if (loop->hung) return;
  const sdk::ShardRun& run = *loop->run;
  const ShardId shard = ShardOf(*loop);
  if (Misbehaves(faults_.crashes) && slot_file_.token == run.grant.token) {
    env_->probes.Hit(Probe::kTrainerCrash);
    return env_->Exit(process_, {.signal = SIGSEGV});
  }
  if (Misbehaves(faults_.fails)) {
    env_->probes.Hit(Probe::kTrainerFailure);
    env_->oracle.OnTrainerFailed(shard, run.grant.token);
    env_->Say(*process_, "fails shard {}", ToString(shard));
    core_->GiveUp(run.grant.token, run.run, sdk::ShardFailure{"a minibatch of nonsense"});
    return LeaveShard(loop);
  }
  if (Misbehaves(faults_.hands_back)) {
    env_->probes.Hit(Probe::kHandedBack);
    env_->oracle.OnTrainerLeft(shard, run.grant.token);
    core_->GiveUp(run.grant.token, run.run);
    return LeaveShard(loop);
  }
  if (Misbehaves(faults_.abandons)) {
    env_->probes.Hit(Probe::kAbandoned);
    env_->Say(*process_, "abandons everything");
    return Fail();
  }
  if (Workload::Trains(shard) && !failed_) {
    const TrainBatch batch = BatchOf(*loop, loop->next);
    if (batch.rows.empty()) {
      env_->probes.Hit(Probe::kEmptyMinibatch);
    } else {
      core_->CommitMinibatch(run.grant.token, run.run, batch.minibatch, link_.PushOf(batch), Now());
    }
  }
  loop->state = State::kAcknowledging;
}

void SimWorker::EndMinibatch(Loop* loop) {
  ++loop->next;
  NextMinibatch(loop);
}

void SimWorker::CheckTensor(const Pull& pull, size_t table, const sdk::Tensor& tensor) {
  const BatchRows& wanted = pull.wanted[table];
  std::map<PartitionId, std::vector<float>> parts;
  for (size_t i = 0; i < wanted.keys.size(); ++i) {
    const std::span<const float> row(tensor.values.get() + wanted.keys[i] * wanted.dim, wanted.dim);
    env_->oracle.OnRows(wanted, i, row);
    std::vector<float>& rows =
        parts[PartitionOf(wanted.table, wanted.keys[i], env_->workload.partitions())];
    rows.insert(rows.end(), row.begin(), row.end());
  }
  for (const auto& [partition, rows] : parts) {
    const sdk::Tensor::Held held = tensor.HeldOf(partition);
    if (held.version == wire::kNoVersion) continue;
    const OwnerEpoch asked =
        pull.map == nullptr ? OwnerEpoch() : pull.map->partitions[partition.value()].epoch;
    env_->oracle.OnHeld({partition, held.epoch, wanted.table, held.version}, asked, rows);
  }
}

void SimWorker::CheckRows(Loop* loop, const Pull& pull, const sdk::PullRows& rows) {
  const bool predicts = Workload::IsPredict(ShardOf(*loop));
  const sdk::RowPlan& plan = pull.batch->plan;
  for (size_t t = 0; t < pull.wanted.size(); ++t) {
    if (plan.tables[t].dense) {
      CheckTensor(pull, t, *rows.tensors[t]);
      continue;
    }
    const size_t dim = plan.tables[t].dim;
    for (size_t i = 0; i < pull.wanted[t].keys.size(); ++i) {
      const std::span<const float> row(pull.batch->outputs[t].rows.get() + i * dim, dim);
      env_->oracle.OnRows(pull.wanted[t], i, row);
      if (!predicts) continue;
      loop->seen.push_back(
          {pull.wanted[t].table, pull.wanted[t].keys[i], {row.begin(), row.end()}});
    }
  }
}

}  // namespace muster::sim
