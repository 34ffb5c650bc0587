#include "master/core/workers/dones.h"

#include <string>

namespace muster {
namespace {

constexpr uint32_t kRejectsToldMax = 100;

}  // namespace

bool Dones::IsDoubtful(RestoreEpoch restore_epoch) const {
  return restore_epoch < books_->partitions.restore_epoch() &&
         !books_->options.planted_bugs.no_reverify;
}

DoneVerdict Dones::Take(const DoneReport& done, const WorkerKey& worker, StepTime at) {
  DoneVerdict verdict{done.shard, done.token, done.run, DoneCode::kRefused,
                      books_->partitions.restore_epoch()};
  if (!books_->ledger.queue().Valid(done.shard)) return verdict;
  if (leasing_->WasAccepted(done, worker)) {
    verdict.code = DoneCode::kAccepted;
    return verdict;
  }
  const Lease* const lease = leasing_->LeaseOfDone(done, worker, at);
  if (lease == nullptr) {
    ++totals_->refused_dones;
    return verdict;
  }
  // An evaluation has pushed nothing that a restore can undo.
  // Rule 2.3.
  if (!lease->evaluate && IsDoubtful(done.restore_epoch)) {
    leasing_->Reverify(done.token, at.now);
    verdict.code = DoneCode::kReverify;
    return verdict;
  }
  // The worker has heard of a restore by the map, and has asked by itself.
  if (!lease->evaluate && done.restore_epoch > lease->restore_epoch) ++totals_->reverified_runs;
  leasing_->Finish(done.token, at.now);
  ledger_->MarkDone(done.shard, done.token, worker.name, done.metrics);
  TellRejects(done.metrics, worker.name, at);
  verdict.code = DoneCode::kAccepted;
  return verdict;
}

void Dones::TellRejects(const ShardMetrics& metrics, const std::string& worker, StepTime at) {
  for (const std::string& sample : metrics.reject_samples) {
    if (rejects_told_ == kRejectsToldMax) return;
    ++rejects_told_;
    const bool last = rejects_told_ == kRejectsToldMax;
    books_->Say(at, kRecordRejected, worker,
                last ? sample + " (more rejected records are only counted)" : sample);
  }
}

}  // namespace muster
