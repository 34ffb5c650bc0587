#include "master/core/group_job/group_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace muster {

std::optional<StepData> GroupShards::Next() {
  if (life_->Directive() != JobDirective::kWork) return std::nullopt;
  if (const std::optional<DoneShard> lacking = books_->ledger.FirstLacking()) {
    const uint32_t minibatches = books_->ledger.MinibatchesOf(lacking->shard);
    return StepData{lacking->shard, minibatches, std::nullopt, /*replay=*/true};
  }
  if (!life_->MayGrantMore()) return std::nullopt;
  ShardQueue& queue = ledger_->queue();
  const std::optional<ShardId> shard = queue.Peek();
  if (!shard.has_value()) return std::nullopt;
  // What would follow if it were done.
  queue.Take(*shard);
  const std::optional<ShardId> ahead = queue.Peek();
  queue.Return(*shard);
  return StepData{*shard, books_->ledger.MinibatchesOf(*shard), ahead};
}

bool GroupShards::IsOpen(const ShardId& shard) const {
  return books_->ledger.queue().StateOf(shard) == ShardState::kTodo ||
         books_->ledger.LacksParts(shard);
}

LeaseToken GroupShards::NewToken(const ShardId& shard) {
  const LeaseToken token = leasing_->NewToken();
  // Parts of the shard may come with this token at any time.
  if (!books_->ledger.IsEvaluate(shard)) leasing_->forgetting().OnLeased(shard, token);
  return token;
}

void GroupShards::Commit(const ShardId& shard, LeaseToken token, const ShardMetrics& metrics,
                         const std::string& worker, RestoreEpoch pushed_under) {
  ledger_->queue().Take(shard);
  ledger_->MarkDone(shard, token, worker, metrics);
  failures_->Settle(shard);
  dones_->TellRejects(metrics, worker, at_);
  if (pushed_under == RestoreEpoch() || books_->ledger.IsEvaluate(shard)) return;
  if (!books_->options.GroupHasTables()) return;
  // Rule 12.20.
  if (!snapshots_->MayLackParts(pushed_under)) return;
  ledger_->LoseParts(*books_->ledger.queue().FindDone(shard));
}

void GroupShards::Replayed(const ShardId& shard, RestoreEpoch pushed_under) {
  const std::optional<DoneShard> done = books_->ledger.queue().FindDone(shard);
  MUSTER_CHECK_MSG(done.has_value(), ToString(shard));
  // Rule 12.21.
  if (pushed_under != RestoreEpoch() && snapshots_->MayLackParts(pushed_under)) return;
  ledger_->PartsPushedAgain(*done);
  replay_failures_.erase(shard);
}

DoneSeq GroupShards::SeqBefore(uint64_t count) const {
  const DoneShards& done = books_->ledger.queue().done();
  MUSTER_CHECK(count <= done.size());
  if (count == done.size()) return books_->ledger.commit_seq();
  return (done.end() - static_cast<std::ptrdiff_t>(count) - 1)->seq;
}

void GroupShards::Checkpointed(uint64_t kept) {
  const DoneSeq last = SeqBefore(kept);
  const bool first = !std::exchange(told_checkpoint_, true);
  if (last <= books_->ledger.checkpointed()) return;
  if (!first) ++totals_->snapshots_accepted;
  ledger_->SetCheckpointed(last);
  snapshots_->Commit(at_);
}

void GroupShards::Undo(uint64_t count) {
  const std::vector<DoneShard> shards = ledger_->ReplayAfter(SeqBefore(count));
  MUSTER_CHECK(shards.size() == count);
  totals_->replayed_shards += shards.size();
  for (const DoneShard& done : shards) {
    totals_->redelivered_minibatches += books_->ledger.MinibatchesOf(done.shard);
  }
}

void GroupShards::Charge(const ShardId& shard, LeaseToken token, const std::string& worker,
                         uint64_t incarnation, std::string_view reason) {
  if (books_->ledger.LacksParts(shard)) return ChargeReplay(shard, token, worker, reason);
  failures_->Charge(token, {shard, {worker, incarnation}}, reason, at_);
}

void GroupShards::ChargeReplay(const ShardId& shard, LeaseToken token, const std::string& worker,
                               std::string_view reason) {
  ReplayFailures& failures = replay_failures_[shard];
  if (token <= failures.charged) return;
  failures.charged = token;
  const uint32_t failures_max = books_->options.leases.failures_max;
  const std::string text = fmt::format(
      "shard {} of dataset '{}' must be pushed again, because a server was restored: failure {} of "
      "{}: {}",
      ToString(shard), books_->NameOf(shard.dataset), ++failures.count, failures_max, reason);
  books_->Say(at_, "shard-failure", worker, text);
  if (failures.count >= failures_max) {
    FailJob(text + ". The tables lack updates; `muster run` tries it again");
  }
}

/// Workers that this run has not started yet count, because they are on their way. A worker that
/// has ended counts, because it may be started again. A worker for which there is no place, or that
/// is drained, does not count.
std::optional<uint32_t> GroupShards::Workers() const {
  const uint32_t wanted = books_->options.group->workers;
  if (wanted == 0) return std::nullopt;
  uint32_t started = 0, come = 0;
  for (const auto& [name, node] : books_->nodes.nodes()) {
    const NodeRecord& record = node.record;
    if (!record.Is(NodeRole::kWorker)) continue;
    const bool of_this_run =
        record.told_start != StartNumber() || record.state != NodeState::kExited;
    if (!of_this_run) continue;
    ++started;
    if (HoldOf(node) == nullptr && node.drain.state == DrainState::kNone) ++come;
  }
  return come + std::max(wanted, started) - started;
}

void GroupShards::FailJob(std::string_view reason) {
  if (!life_->over()) life_->End(JobState::kFailed, reason, at_);
}

}  // namespace muster
