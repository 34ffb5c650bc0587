#include "master/core/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/status.h"
#include "base/text.h"

namespace muster {
namespace {

std::vector<QueueDataset> QueueDatasets(const std::vector<DatasetPlan>& plan) {
  std::vector<QueueDataset> datasets;
  for (const DatasetPlan& dataset : plan) {
    datasets.push_back({dataset.mode, dataset.epochs, dataset.shards});
  }
  return datasets;
}

}  // namespace

absl::Status Ledger::CheckFits(const std::vector<DatasetPlan>& plan, const DurableState& state) {
  const ShardQueue queue(QueueDatasets(plan));
  auto check = [&](DatasetId dataset, EpochIndex epoch) -> absl::Status {
    if (queue.ValidEpoch(dataset, epoch)) return absl::OkStatus();
    const bool known = dataset.value() < plan.size();
    return absl::FailedPreconditionError(fmt::format(
        "dataset '{}' has {} epochs in the job file, but epoch {} (counted from 1) has already "
        "begun: the number of epochs may grow on resume, not shrink below what was trained",
        known ? plan[dataset.value()].name : fmt::format("#{}", dataset.value()),
        known ? queue.epochs(dataset) : 0, epoch.value() + 1));
  };
  for (const auto& [key, record] : state.epochs) {
    MUSTER_RETURN_IF_ERROR(check(key.first, key.second));
  }
  auto check_shard = [&](const ShardId& shard) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(check(shard.dataset, shard.epoch));
    if (queue.Valid(shard)) return absl::OkStatus();
    return absl::DataLossError(
        fmt::format("the journal knows shard {}, which the data does not have", ToString(shard)));
  };
  for (const auto& [seq, record] : state.done) {
    MUSTER_RETURN_IF_ERROR(check_shard(record.done.shard));
  }
  for (const auto& [shard, record] : state.failures) MUSTER_RETURN_IF_ERROR(check_shard(shard));
  return absl::OkStatus();
}

Ledger::Ledger(std::vector<DatasetPlan> plan, const DurableState& state)
    : plan_(std::move(plan)), queue_(QueueDatasets(plan_)), failures_(state.failures) {
  if (state.meta.has_value()) {
    done_seq_ = state.meta->done_seq;
    commit_seq_ = state.meta->commit_seq;
  }
  for (const auto& [key, record] : state.epochs) {
    queue_.RestoreCommitted(key.first, key.second, record.committed);
    totals_[key] = {record.records_committed, 0, record.metrics};
    rejected_ += record.metrics.rejected_records;
  }
  for (const auto& [seq, record] : state.done) {
    MUSTER_CHECK(seq <= done_seq_ && seq > commit_seq_);
    queue_.RestoreDone(record.done);
    const uint32_t records = RecordsOf(record.done.shard);
    totals_[{record.done.shard.dataset, record.done.shard.epoch}].records_done += records;
    rejected_ += record.metrics.scalars.rejected_records;
    details_[seq] = {record.worker, record.metrics, records};
  }
  for (const auto& [shard, record] : state.failures) {
    if (record.failed) queue_.RestoreFailed(shard);
  }
  queue_.FinishRestore();
}

uint32_t Ledger::RecordsOf(const ShardId& shard) const {
  return plan_[shard.dataset.value()].records_of(shard.epoch, shard.index);
}

uint32_t Ledger::MinibatchesOf(const ShardId& shard) const {
  const uint32_t size = plan_[shard.dataset.value()].minibatch_size;
  return (RecordsOf(shard) + size - 1) / size;
}

void Ledger::MarkDone(const ShardId& shard, LeaseToken token, const std::string& worker,
                      const ShardMetrics& metrics) {
  MUSTER_CHECK(!IsEvaluate(shard));
  DoneShard done{done_seq_.Next(), shard, token};
#ifdef MUSTER_PLANTED_BUGS
  const auto before = replayed_.find(shard);
  if (MUSTER_PLANTED(kReplayKeepsSeq) && before != replayed_.end()) done.seq = before->second;
#endif
  queue_.SetDone(done);
  done_seq_ = std::max(done_seq_, done.seq);
  DoneDetail detail{worker, Pack(metrics), RecordsOf(shard)};
  totals_[{shard.dataset, shard.epoch}].records_done += detail.records;
  rejected_ += metrics.rejected_records;
  pending_.push_back(DoneRecord{done, worker, detail.metrics});
  details_.emplace_hint(details_.end(), done.seq, std::move(detail));
  if (MUSTER_PLANTED(kMetricsWhenDone)) {
    Merge(&totals_[{shard.dataset, shard.epoch}].metrics, metrics);
  }
}

void Ledger::MarkEvaluated(const ShardId& shard, const ShardMetrics& metrics) {
  MUSTER_CHECK(IsEvaluate(shard));
  queue_.CommitLeased(shard);
  rejected_ += metrics.rejected_records;
  MergeCommitted(shard, metrics, RecordsOf(shard));
}

void Ledger::MergeCommitted(const ShardId& shard, const ShardMetrics& metrics, uint32_t records) {
  EpochTotals& totals = totals_[{shard.dataset, shard.epoch}];
  totals.records_committed += records;
  if (!MUSTER_PLANTED(kMetricsWhenDone) || IsEvaluate(shard)) Merge(&totals.metrics, metrics);
  dirty_epochs_.insert({shard.dataset, shard.epoch});
  DropFailures(shard);
}

void Ledger::DropFailures(const ShardId& shard) {
  if (failures_.erase(shard) > 0) dirty_failures_.insert(shard);
}

std::vector<Ledger::Committed> Ledger::CommitUpTo(DoneSeq last) {
  std::vector<Committed> result;
  if (last <= commit_seq_) return result;
  MUSTER_CHECK(last <= done_seq_);
  for (const DoneShard& done : queue_.CommitUpTo(last)) {
    auto detail = details_.find(done.seq);
    MUSTER_CHECK(detail != details_.end());
    const uint32_t records = detail->second.records;
    totals_[{done.shard.dataset, done.shard.epoch}].records_done -= records;
    MergeCommitted(done.shard, Unpack(detail->second.metrics), records);
    result.push_back({done, std::move(detail->second.worker), records});
    details_.erase(detail);
  }
  pending_.push_back(EraseDone{commit_seq_.Next(), last});
  commit_seq_ = last;
  return result;
}

std::vector<DoneShard> Ledger::ReplayAfter(DoneSeq cut) {
  std::vector<DoneShard> result = queue_.ReplayAfter(cut);
  for (const DoneShard& done : result) {
    auto detail = details_.find(done.seq);
    MUSTER_CHECK(detail != details_.end());
    totals_[{done.shard.dataset, done.shard.epoch}].records_done -= detail->second.records;
    rejected_ -= detail->second.metrics.scalars.rejected_records;
    details_.erase(detail);
#ifdef MUSTER_PLANTED_BUGS
    replayed_[done.shard] = done.seq;
#endif
  }
  if (!result.empty()) pending_.push_back(EraseDone{result.front().seq, result.back().seq});
  return result;
}

Ledger::Charged Ledger::ChargeTrainer(const ShardId& shard, LeaseToken token,
                                      std::string_view reason, uint32_t failures_max) {
  MUSTER_CHECK(queue_.StateOf(shard) == ShardState::kTodo);
  FailureRecord& record = failures_[shard];
  record.shard = shard;
  if (token <= record.charged && !MUSTER_PLANTED(kChargedAgain)) return Charged::kAlready;
  record.charged = token;
  ++record.failures;
  if (record.reasons.size() == kReasonsMax) record.reasons.erase(record.reasons.begin());
  record.reasons.push_back(ValidUtf8(reason, kReasonBytesMax));
  dirty_failures_.insert(shard);
  if (record.failures < failures_max) return Charged::kYes;
  record.failed = true;
  queue_.Take(shard);
  queue_.SetFailed(shard);
  return Charged::kFailed;
}

void Ledger::CountNodeFailure(const ShardId& shard) {
  FailureRecord& record = failures_[shard];
  record.shard = shard;
  ++record.node_failures;
  dirty_failures_.insert(shard);
}

void Ledger::Retry(const ShardId& shard) {
  queue_.RetryFailed(shard);
  FailureRecord& record = failures_[shard];
  record.failed = false;
  record.failures = 0;
  dirty_failures_.insert(shard);
}

const FailureRecord* Ledger::FindFailure(const ShardId& shard) const {
  auto it = failures_.find(shard);
  return it == failures_.end() ? nullptr : &it->second;
}

uint64_t Ledger::RecordsCommitted(DatasetId dataset, EpochIndex epoch) const {
  auto it = totals_.find({dataset, epoch});
  return it == totals_.end() ? 0 : it->second.records_committed;
}

uint64_t Ledger::RecordsDone(DatasetId dataset, EpochIndex epoch) const {
  auto it = totals_.find({dataset, epoch});
  return it == totals_.end() ? 0 : it->second.records_committed + it->second.records_done;
}

const ShardMetrics* Ledger::Metrics(DatasetId dataset, EpochIndex epoch) const {
  auto it = totals_.find({dataset, epoch});
  return it == totals_.end() ? nullptr : &it->second.metrics;
}

void Ledger::Collect(std::vector<Mutation>* mutations) {
  for (Mutation& mutation : pending_) mutations->push_back(std::move(mutation));
  pending_.clear();
  for (const EpochKey& key : dirty_epochs_) {
    const EpochTotals& totals = totals_[key];
    mutations->push_back(EpochRecord{key.first, key.second, queue_.Committed(key.first, key.second),
                                     totals.records_committed, totals.metrics});
  }
  dirty_epochs_.clear();
  for (const ShardId& shard : dirty_failures_) {
    if (const FailureRecord* record = FindFailure(shard)) {
      mutations->push_back(*record);
    } else {
      mutations->push_back(EraseFailure{shard});
    }
  }
  dirty_failures_.clear();
}

}  // namespace muster
