#include "master/core/workers/failures.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"

namespace muster {

void Failures::Charge(LeaseToken token, const Run& run, std::string_view reason, StepTime at) {
  const auto& [shard, worker] = run;
  const uint32_t failures_max = books_->options.leases.failures_max;
  const Ledger::Charged charged = ledger_->ChargeTrainer(
      shard, token, fmt::format("{}: {}", worker.name, reason), failures_max);
  if (charged == Ledger::Charged::kAlready) return;
  const bool failed = charged == Ledger::Charged::kFailed;
  if (failed) Settle(shard);
  const FailureRecord* record = books_->ledger.FindFailure(shard);
  MUSTER_CHECK(record != nullptr);
  books_->Say(at, failed ? MasterEventKind("shard-failed") : MasterEventKind("shard-failure"),
              worker.name,
              fmt::format("shard {} of dataset '{}': failure {} of {}{}: {}", ToString(shard),
                          books_->NameOf(shard.dataset), record->failures, failures_max,
                          failed ? ", the shard is FAILED" : "", reason));
}

void Failures::HandedBack(const ReturnedLease& returned, const WorkerKey& worker, StepTime at) {
  if (!hand_backs_.Count(returned.shard, returned.token, returned.minibatches_started)) return;
  Charge(returned.token, {returned.shard, worker},
         fmt::format("handed back {} times without progress: the trainer leaves the shard before "
                     "its end",
                     HandBacks::kWithoutProgressMax),
         at);
}

void Failures::Remember(LeaseToken token, const Run& run) {
  ended_.emplace(token, run);
  if (ended_.size() > books_->options.limits.ended_leases) ended_.erase(ended_.begin());
}

const Failures::Run* Failures::Find(LeaseToken token) const {
  const auto run = ended_.find(token);
  return run == ended_.end() ? nullptr : &run->second;
}

absl::StatusOr<uint64_t> Failures::Retry(const std::vector<ShardId>& shards, StepTime at) {
  const ShardQueue& queue = books_->ledger.queue();
  for (const ShardId& shard : shards) {
    if (!queue.Valid(shard)) {
      return absl::FailedPreconditionError(fmt::format(
          "shard {}: the job has no such shard (dataset/epoch/index)", ToString(shard)));
    }
    if (queue.StateOf(shard) != ShardState::kFailed) {
      return absl::FailedPreconditionError(
          fmt::format("shard {} is {}, not FAILED, so it cannot be tried again. `muster shards "
                      "--state failed` lists the FAILED shards. No shard was changed",
                      ToString(shard), ToString(queue.StateOf(shard))));
    }
  }
  uint64_t retried = 0;
  for (const ShardId& shard : shards.empty() ? queue.FailedShards() : shards) {
    // The shard was named twice, and is no longer FAILED.
    if (queue.StateOf(shard) != ShardState::kFailed) continue;
    ledger_->Retry(shard);
    // The crash of a former run may be told later. It happened before the retry.
    std::erase_if(ended_, [&](const auto& ended) { return ended.second.shard == shard; });
    ++retried;
  }
  if (retried > 0) {
    books_->Say(at, "shards-retried", "", CountText(retried, "shard"));
  }
  return retried;
}

}  // namespace muster
