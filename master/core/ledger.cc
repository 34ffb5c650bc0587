#include "master/core/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "base/words/parts.h"
#include "master/core/streams/stream_check.h"

namespace muster {
namespace {

std::vector<QueueDataset> QueueDatasets(const std::vector<DatasetPlan>& plan,
                                        const DurableState& state) {
  std::vector<QueueDataset> datasets;
  for (uint32_t i = 0; i < plan.size(); ++i) {
    datasets.push_back({.mode = plan[i].mode,
                        .epochs = plan[i].epochs,
                        .shards = plan[i].shards,
                        .pace = plan[i].pace});
    if (!plan[i].stream.has_value()) continue;
    const auto stream = state.streams.find(DatasetId(i));
    datasets.back().open = true;
    datasets.back().shards = stream == state.streams.end() ? 0 : stream->second.next_shard.value();
  }
  return datasets;
}

/// A record with only node failures is small, and is removed with its shard.
Ledger::FailureTotals TotalsOf(const FailureRecord& record) {
  uint64_t bytes = record.failed ? 2 * sizeof(record) : 0;
  for (const std::string& reason : record.reasons) bytes += sizeof(reason) + reason.size();
  return {bytes, record.failed && !record.lost ? 1u : 0u};
}
void Add(const FailureRecord& record, Ledger::FailureTotals* totals) {
  const auto [bytes, by_trainers] = TotalsOf(record);
  totals->bytes += bytes;
  totals->by_trainers += by_trainers;
}
void Subtract(const FailureRecord& record, Ledger::FailureTotals* totals) {
  const auto [bytes, by_trainers] = TotalsOf(record);
  MUSTER_CHECK(totals->bytes >= bytes && totals->by_trainers >= by_trainers);
  totals->bytes -= bytes;
  totals->by_trainers -= by_trainers;
}

/// Updates the totals when this object ends, after the record has changed.
class Recount {
 public:
  Recount(Ledger::FailureTotals* totals, const FailureRecord* record)
      : totals_(totals), record_(record) {
    Subtract(*record_, totals_);
  }
  ~Recount() { Add(*record_, totals_); }
  Recount(const Recount&) = delete;
  Recount& operator=(const Recount&) = delete;

 private:
  Ledger::FailureTotals* const totals_;
  const FailureRecord* const record_;
};

}  // namespace

absl::Status Ledger::CheckFits(const std::vector<DatasetPlan>& plan, const DurableState& state) {
  ShardQueue queue(QueueDatasets(plan, state));
  auto check = [&](DatasetId dataset, EpochIndex epoch) -> absl::Status {
    if (queue.ValidEpoch(dataset, epoch)) return absl::OkStatus();
    const bool known = dataset.value() < plan.size();
    return absl::FailedPreconditionError(fmt::format(
        "dataset '{}' has {} epochs in the job file, but epoch {} (counted from 1) has already "
        "begun. On resume, the number of epochs may not be less than the number begun",
        known ? plan[dataset.value()].name : fmt::format("#{}", dataset.value()),
        known ? queue.epochs(dataset) : 0, epoch.value() + 1));
  };
  for (const auto& [key, record] : state.epochs) {
    MUSTER_RETURN_IF_ERROR(check(key.first, key.second));
  }
  for (const auto& [dataset, record] : state.whole_epochs) {
    if (record.epochs.empty()) continue;
    const uint64_t last = record.epochs.intervals().rbegin()->second - 1;
    MUSTER_RETURN_IF_ERROR(check(dataset, EpochIndex(static_cast<uint32_t>(last))));
    if (plan[dataset.value()].shards == 0 || plan[dataset.value()].stream.has_value()) {
      return absl::DataLossError(
          fmt::format("the journal has whole epochs of dataset '{}', but it has no shards that "
                      "are known before",
                      plan[dataset.value()].name));
    }
    queue.RestoreWhole(dataset, record.epochs);
  }
  auto check_shard = [&](const ShardId& shard) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(check(shard.dataset, shard.epoch));
    if (!queue.Valid(shard)) {
      return absl::DataLossError(
          fmt::format("the journal has shard {}, but the data do not have it", ToString(shard)));
    }
    if (!queue.WholeEpochs(shard.dataset).Contains(shard.epoch.value())) return absl::OkStatus();
    return absl::DataLossError(
        fmt::format("the journal has shard {} as not COMMITTED, but its whole epoch as COMMITTED",
                    ToString(shard)));
  };
  for (const auto& [seq, record] : state.done) {
    MUSTER_RETURN_IF_ERROR(check_shard(record.done.shard));
  }
  for (const auto& [shard, record] : state.failures) MUSTER_RETURN_IF_ERROR(check_shard(shard));
  auto check_stream = [&](DatasetId dataset) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(check(dataset, EpochIndex(0)));
    if (plan[dataset.value()].stream.has_value()) return absl::OkStatus();
    return absl::DataLossError(fmt::format(
        "the journal has offsets of dataset '{}', but it is no topic", plan[dataset.value()].name));
  };
  for (const auto& [dataset, record] : state.streams) {
    MUSTER_RETURN_IF_ERROR(check_stream(dataset));
    MUSTER_RETURN_IF_ERROR(CheckStreamComplete(record, state));
  }
  for (const auto& [key, position] : state.stream_positions) {
    MUSTER_RETURN_IF_ERROR(check_stream(key.first));
  }
  for (const auto& [shard, cut] : state.stream_shards) {
    MUSTER_RETURN_IF_ERROR(check_stream(shard.dataset));
    MUSTER_RETURN_IF_ERROR(check_shard(shard));
  }
  MUSTER_RETURN_IF_ERROR(CheckStreamShards(state));
  return absl::OkStatus();
}

Ledger::Ledger(std::vector<DatasetPlan> plan, const DurableState& state, size_t metric_names,
               Evaluation evaluation)
    : plan_(std::move(plan)),
      streams_(plan_, state),
      queue_(QueueDatasets(plan_, state), evaluation),
      totals_(&plan_, &queue_, {.metric_names = metric_names, .evaluation = evaluation}),
      failures_(state.failures) {
  if (state.meta.has_value()) {
    done_seq_ = state.meta->done_seq;
    checkpointed_ = commit_seq_ = state.meta->commit_seq;
  }
  for (const auto& [dataset, record] : state.whole_epochs) {
    if (!record.epochs.empty()) queue_.RestoreWhole(dataset, record.epochs);
  }
  for (const auto& [key, record] : state.epochs) {
    queue_.RestoreCommitted(key.first, key.second, record.committed);
  }
  rejected_ = totals_.Restore(state);
  for (const auto& [seq, record] : state.done) {
    MUSTER_CHECK(seq <= done_seq_ && seq > commit_seq_);
    queue_.RestoreDone(record.done);
    if (record.lacks_parts) pushed_.Lose(seq);
    if (record.pushed_again != DoneSeq()) pushed_.PushedAgain(seq, record.pushed_again);
    const uint32_t records = RecordsTrained(record.done.shard, record.metrics);
    totals_.AddDone(record.done.shard, records);
    rejected_ += record.metrics.rejected_records;
    details_.Add(record.worker, records, record.metrics);
  }
  for (const auto& [shard, record] : state.failures) {
    Add(record, &failed_);
    if (record.failed) queue_.RestoreFailed(shard);
  }
  queue_.FinishRestore();
  for (const auto& [shard, record] : failures_) {
    const bool todo = queue_.StateOf(shard) == ShardState::kTodo;
    if (todo && record.failures > 0) queue_.Defer(shard);
  }
  for (const DatasetId dataset : streams_.datasets()) {
    if (streams_.AtEnd(dataset)) queue_.Close(dataset);
  }
}

uint32_t Ledger::RecordsOf(const ShardId& shard) const {
  if (streams_.Grows(shard.dataset)) {
    const StreamShard* cut = streams_.Find(shard);
    return cut == nullptr ? 0 : static_cast<uint32_t>(cut->offsets());
  }
  return plan_[shard.dataset.value()].size_of(shard.epoch, shard.index).records;
}

uint32_t Ledger::MinibatchesOf(const ShardId& shard) const {
  const DatasetPlan& plan = plan_[shard.dataset.value()];
  if (!streams_.Grows(shard.dataset)) return plan.size_of(shard.epoch, shard.index).minibatches;
  return StreamMinibatches(RecordsOf(shard), plan.minibatch_size);
}

uint32_t Ledger::RecordsTrained(const ShardId& shard, const ShardMetrics& metrics) const {
  const uint32_t records = RecordsOf(shard);
  if (!streams_.Grows(shard.dataset)) return records;
  // Only the worker that read the range knows how many of its offsets are records.
  return static_cast<uint32_t>(std::min<uint64_t>(records, metrics.records));
}

void Ledger::MarkDone(const ShardId& shard, LeaseToken token, const std::string& worker,
                      const ShardMetrics& of_run) {
  ShardMetrics metrics = first_metrics_.Take(shard, of_run);
  metrics.records_later = IsEvaluate(shard) ? RecordsBegunAfter(queue_.TrainingEpochOf(shard)) : 0;
  // Larger than all before, even if the shard was DONE earlier.
  const DoneShard done{done_seq_.Next(), shard, token};
  // Snapshots contain everything DONE up to their cut, so no DONE shard may be added below a cut.
  MUSTER_CHECK_MSG(done.seq > done_seq_, ToString(shard));
  queue_.SetDone(done);
  done_seq_ = done.seq;
  const uint32_t records = RecordsTrained(shard, metrics);
  totals_.AddDone(shard, records);
  rejected_ += metrics.rejected_records;
  pending_.push_back(DoneRecord{done, worker, metrics});
  details_.Add(worker, records, metrics);
  MUSTER_CHECK(details_.size() == queue_.done().size());
}

void Ledger::MergeCommitted(const ShardId& shard, const ShardMetrics& metrics, uint32_t records) {
  // Nothing can undo the run any more.
  totals_.Commit(shard, metrics, records);
  streams_.OnCommitted(shard);
  DropFailures(shard);
}

void Ledger::DropFailures(const ShardId& shard) {
  const auto record = failures_.find(shard);
  if (record == failures_.end()) return;
  Subtract(record->second, &failed_);
  failures_.erase(record);
  dirty_failures_.insert(shard);
}

Ledger::Committed Ledger::CommitUpTo(DoneSeq last, size_t most) {
  Committed result;
  if (last <= commit_seq_) return result;
  MUSTER_CHECK(last <= done_seq_);
  for (const DoneShard& done : queue_.CommitUpTo(last, most)) {
    const DoneDetail detail = details_.TakeFirst();
    MergeCommitted(done.shard, detail.metrics, detail.records);
    result.epochs.insert({done.shard.dataset, done.shard.epoch});
    if (!IsEvaluate(done.shard)) result.records[detail.worker] += detail.records;
    result.shards.push_back(done.shard);
    if (result.shards.size() == most) last = done.seq;
  }
  std::ranges::sort(result.shards);
  pending_.push_back(EraseDone{commit_seq_.Next(), last});
  commit_seq_ = last;
  pushed_.DropUpTo(last);
  MUSTER_CHECK(details_.size() == queue_.done().size());
  MUSTER_CHECK(queue_.done().empty() || queue_.done().first().seq > commit_seq_);
  return result;
}

std::vector<DoneShard> Ledger::ReplayAfter(DoneSeq cut) {
  // COMMITTED shards are in every partition for good.
  MUSTER_CHECK(cut >= commit_seq_);
  std::vector<DoneShard> result = queue_.ReplayAfter(cut);
  for (auto done = result.rbegin(); done != result.rend(); ++done) {
    const DoneDetail detail = details_.TakeLast();
    totals_.TakeBack(done->shard, detail.records);
    MUSTER_CHECK(rejected_ >= detail.metrics.rejected_records);
    rejected_ -= detail.metrics.rejected_records;
    if (!IsEvaluate(done->shard)) first_metrics_.Keep(done->shard, detail.metrics);
  }
  pushed_.DropAfter(cut);
  MUSTER_CHECK(details_.size() == queue_.done().size());
  if (!result.empty()) pending_.push_back(EraseDone{result.front().seq, result.back().seq});
  return result;
}

uint64_t Ledger::done_after_checkpoint() const {
  const DoneShards& done = queue_.done();
  const auto after = std::ranges::upper_bound(done, checkpointed_, {}, &DoneShard::seq);
  return static_cast<uint64_t>(done.end() - after);
}

void Ledger::WriteDone(const DoneShard& done) {
  const auto at = std::ranges::lower_bound(queue_.done(), done.seq, {}, &DoneShard::seq);
  DoneDetail detail = details_.At(static_cast<size_t>(at - queue_.done().begin()));
  const std::optional<DoneSeq> as_of = pushed_.SeqOf(done.seq);
  pending_.push_back(DoneRecord{done, std::move(detail.worker), std::move(detail.metrics),
                                !as_of.has_value(), as_of.value_or(DoneSeq())});
}

void Ledger::LoseParts(const DoneShard& done) {
  MUSTER_CHECK_MSG(!IsEvaluate(done.shard), ToString(done.shard));
  pushed_.Lose(done.seq);
  WriteDone(done);
}

void Ledger::PartsPushedAgain(const DoneShard& done) {
  MUSTER_CHECK_MSG(pushed_.Lacks(done.seq), ToString(done.shard));
  done_seq_ = done_seq_.Next();
  pushed_.PushedAgain(done.seq, done_seq_);
  WriteDone(done);
}

std::optional<DoneShard> Ledger::FirstLacking() const {
  const std::optional<DoneSeq> seq = pushed_.FirstLacking();
  if (!seq.has_value()) return std::nullopt;
  return *std::ranges::lower_bound(queue_.done(), *seq, {}, &DoneShard::seq);
}

bool Ledger::LacksParts(const ShardId& shard) const {
  const std::optional<DoneShard> done = queue_.FindDone(shard);
  return done.has_value() && pushed_.Lacks(done->seq);
}

void Ledger::TakeLook(DatasetId dataset, std::span<const PartitionLook> partition_looks,
                      TimePoint now, WallTime wall) {
  streams_.See(dataset, partition_looks, now, wall);
}

std::vector<StreamTable::NewShard> Ledger::CutStream(DatasetId dataset, TimePoint now) {
  std::vector<StreamTable::NewShard> added;
  if (!queue_.IsOpen(dataset)) return added;
  const EpochCounts counts = queue_.Counts(dataset, EpochIndex(0));
  MUSTER_CHECK(counts.shards >= counts.done + counts.committed + counts.failed);
  const uint64_t open = counts.shards - counts.done - counts.committed - counts.failed;
  const uint64_t open_max = plan_[dataset.value()].stream->open_ranges_max;
  if (open < open_max) added = streams_.CutDue(dataset, open_max - open, now);
  queue_.AddShards(dataset, added.size());
  MUSTER_CHECK(added.empty() || added.back().shard.index.value() + 1 ==
                                    queue_.Counts(dataset, EpochIndex(0)).shards);
  if (streams_.AtEnd(dataset)) queue_.Close(dataset);
  return added;
}

void Ledger::FailLost(const ShardId& shard, std::string_view reason) {
  FailureRecord& record = failures_[shard];
  const Recount recount(&failed_, &record);
  record.shard = shard;
  record.lost = true;  // journaled, so that a later master does not wait for the data
  AddReason(reason, &record);
  streams_.OnLost(shard);
  if (std::exchange(record.failed, true)) return;
  MUSTER_CHECK(queue_.StateOf(shard) == ShardState::kTodo);
  queue_.Take(shard);
  queue_.SetFailed(shard);
}

void Ledger::AddReason(std::string_view reason, FailureRecord* record) {
  if (record->reasons.size() == kReasonsMax) record->reasons.erase(record->reasons.begin());
  record->reasons.push_back(ValidUtf8(reason, kReasonBytesMax));
  dirty_failures_.insert(record->shard);
}

Ledger::Charged Ledger::ChargeTrainer(const ShardId& shard, LeaseToken token,
                                      std::string_view reason, uint32_t failures_max) {
  MUSTER_CHECK(queue_.StateOf(shard) == ShardState::kTodo);
  FailureRecord& record = failures_[shard];
  const Recount recount(&failed_, &record);
  record.shard = shard;
  MUSTER_CHECK_MSG(!record.failed, ToString(shard));
  // A repeated report, or a report of an older lease than the last charged one, is no new failure.
  if (token <= record.charged) return Charged::kAlready;
  MUSTER_CHECK_MSG(token > record.charged && record.failures < failures_max, ToString(shard));
  record.charged = token;
  ++record.failures;
  AddReason(reason, &record);
  if (record.failures < failures_max) {
    queue_.Defer(shard);
    return Charged::kYes;
  }
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
  const Recount recount(&failed_, &record);
  MUSTER_CHECK_MSG(record.failed, ToString(shard));
  // Otherwise, its range would delay the reported COMMITTED offset twice, or not at all.
  MUSTER_CHECK_MSG(record.lost == streams_.IsLost(shard), ToString(shard));
  record.failed = false;
  record.reasons.clear();
  if (std::exchange(record.lost, false)) streams_.OnRetried(shard);
  record.failures = 0;
  dirty_failures_.insert(shard);
}

const FailureRecord* Ledger::FindFailure(const ShardId& shard) const {
  auto it = failures_.find(shard);
  return it == failures_.end() ? nullptr : &it->second;
}

uint64_t Ledger::RecordsBegunAfter(EpochIndex epoch) const {
  uint64_t records = 0;
  for (uint32_t i = 0; i < plan_.size(); ++i) {
    const DatasetPlan& plan = plan_[i];
    if (plan.mode != DatasetMode::kTrain || plan.shards == 0) continue;
    for (uint32_t e = epoch.value() + 1; e < plan.epochs; ++e) {
      const uint64_t leased = queue_.Counts(DatasetId(i), EpochIndex(e)).leased;
      const uint64_t done = RecordsDone(DatasetId(i), EpochIndex(e));
      if (leased + done == 0) break;  // epochs begin in order
      records += done + DivideUp(leased * plan.records, plan.shards);
    }
  }
  return records;
}

void Ledger::Collect(std::vector<Mutation>* mutations) {
  streams_.Collect(mutations);
  for (Mutation& mutation : pending_) mutations->push_back(std::move(mutation));
  pending_.clear();
  totals_.Collect(mutations);
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
