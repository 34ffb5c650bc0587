#include "master/core/groups/group_shards.h"

#include <limits>
#include <vector>

#include "base/check.h"

namespace muster {

std::optional<StepData> GroupShards::Next() {
  if (life_->Directive() != JobDirective::kWork || !life_->MayGrantMore()) return std::nullopt;
  ShardQueue& queue = books_->ledger.queue();
  const std::optional<ShardId> shard = queue.Peek();
  if (!shard.has_value()) return std::nullopt;
  // What would follow if it were done.
  queue.Take(*shard);
  const std::optional<ShardId> ahead = queue.Peek();
  queue.Return(*shard);
  return StepData{*shard, books_->ledger.MinibatchesOf(*shard), ahead};
}

bool GroupShards::IsTodo(const ShardId& shard) const {
  return books_->ledger.queue().StateOf(shard) == ShardState::kTodo;
}

void GroupShards::Commit(const ShardId& shard, LeaseToken token, const ShardMetrics& metrics,
                         const std::string& worker) {
  books_->ledger.queue().Take(shard);
  books_->ledger.MarkDone(shard, token, worker, metrics);
  failures_->Settle(shard);
  dones_->TellRejects(metrics, worker, at_);
}

DoneSeq GroupShards::SeqBefore(uint64_t count) const {
  const DoneShards& done = books_->ledger.queue().done();
  MUSTER_CHECK(count <= done.size());
  if (count == done.size()) return books_->ledger.commit_seq();
  return (done.end() - static_cast<std::ptrdiff_t>(count) - 1)->seq;
}

void GroupShards::CommitAllBut(uint64_t kept) {
  const uint64_t done = books_->ledger.queue().done().size();
  if (done <= kept) return;
  ++books_->totals.snapshots_accepted;
  const Ledger::Committed committed =
      books_->ledger.CommitUpTo(SeqBefore(kept), std::numeric_limits<size_t>::max());
  snapshots_->TellCommitted(committed, at_);
}

void GroupShards::Undo(uint64_t count) {
  const std::vector<DoneShard> shards = books_->ledger.ReplayAfter(SeqBefore(count));
  MUSTER_CHECK(shards.size() == count);
  books_->totals.replayed_shards += shards.size();
  for (const DoneShard& done : shards) {
    books_->totals.redelivered_minibatches += books_->ledger.MinibatchesOf(done.shard);
  }
}

void GroupShards::Charge(const ShardId& shard, LeaseToken token, const std::string& worker,
                         uint64_t incarnation, std::string_view reason) {
  failures_->Charge(token, {shard, {worker, incarnation}}, reason, at_);
}

void GroupShards::FailJob(std::string_view reason) {
  if (!life_->over()) life_->End(JobState::kFailed, reason, at_);
}

}  // namespace muster
