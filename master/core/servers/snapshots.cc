#include "master/core/servers/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/text.h"
#include "proto/status/epoch_words.h"

namespace muster {
namespace {

std::string_view HowRestored(uint64_t partitions, bool from_snapshots) {
  if (partitions == 1) {
    return from_snapshots ? "is restored from its snapshot" : "starts without a snapshot";
  }
  return from_snapshots ? "are restored from their snapshots" : "start without a snapshot";
}

}  // namespace

void Snapshots::Take(const ServerExchangeRequest& request, StepTime at) {
  bool accepted = false;
  for (const SnapshotReport& report : request.snapshots) {
    if (partitions_->Accept(request.id, request.incarnation, report,
                            {books_->ledger.done_seq(), at.now}, &unused_files_)) {
      ++totals_->snapshots_accepted;
      accepted = true;
    }
  }
  std::erase_if(unused_files_,
                [this](const std::string& file) { return epoch_ends_->kept().Names(file); });
  if (accepted) Commit(at);
}

DoneSeq Snapshots::Cut() {
  if (!books_->options.group.has_value()) return partitions_->MinCut();
  const DoneSeq stored = books_->ledger.checkpointed();
  if (!books_->options.GroupHasTables()) return stored;
  const DoneSeq cut = partitions_->MinCut();
  // Rule 12.22.
  return std::min(stored, books_->ledger.pushed().HeldUpTo(cut));
}

void Snapshots::Commit(StepTime at) {
  const bool group = books_->options.group.has_value();
  const DoneSeq cut = Cut();
  if (cut <= books_->ledger.commit_seq()) return;
  MUSTER_CHECK(books_->partitions.AllHold(cut) || books_->options.servers == 0);
  // A group has few steps.
  const size_t most =
      group ? std::numeric_limits<size_t>::max() : books_->options.limits.commits_at_once;
  // Rule 3.6.
  const Ledger::Committed committed = ledger_->CommitUpTo(cut, most);
  for (const ShardId& shard : committed.shards) {
    // Partitions have nothing of an evaluation.
    if (!books_->ledger.IsEvaluate(shard)) leasing_->forgetting().OnCommitted(shard);
  }
  TellCommitted(committed, at);
  ledger_->ThinOut(books_->options.limits.epochs_known, epoch_ends_->Needed());
}

void Snapshots::TellCommitted(const Ledger::Committed& committed, StepTime at) {
  for (const auto& [worker, records] : committed.records) {
    if (Node* node = nodes_->Find(worker)) {
      node->record.records_committed += records;
      nodes_->Touch(*node);
    }
  }
  TellEpochs(committed.epochs, at);
  life_->CheckLimits(at);
  life_->CheckEnd(at);
}

void Snapshots::TellEpochs(const std::set<std::pair<DatasetId, EpochIndex>>& epochs, StepTime at) {
  const Ledger& ledger = books_->ledger;
  for (auto next = epochs.begin(); next != epochs.end();) {
    const auto [dataset, first] = *next;
    uint64_t shards = 0, records = 0;
    EpochIndex end = first;
    for (; next != epochs.end() && *next == std::pair(dataset, end); ++next) {
      const EpochCounts counts = ledger.queue().Counts(dataset, end);
      if (counts.committed < counts.shards || ledger.queue().IsOpen(dataset)) break;
      shards += counts.shards;
      records += ledger.RecordsCommitted(dataset, end);
      end = end.Next();
    }
    if (end == first) {
      ++next;
      continue;
    }
    books_->Say(at, kEpochCommittedKind, "",
                fmt::format("{}: {}, {}",
                            EpochWords({books_->NameOf(dataset), first.value(), end.value() - 1}),
                            CountText(shards, "shard"), CountText(records, "record")));
  }
}

void Snapshots::Replay(const PartitionTable::Restored& restored, const std::string& why,
                       StepTime at) {
  if (restored.partitions == 0) return;
  leasing_->OnRestored(at.now);
  if (books_->options.group.has_value()) return LoseParts(restored, why, at);
  const Ledger& ledger = books_->ledger;
  const std::vector<DoneShard> shards = ledger_->ReplayAfter(restored.replay_after);
  // The restored partitions contain all shards that are still DONE.
  MUSTER_CHECK(ledger.queue().done().empty() ||
               ledger.queue().done().last().seq <= restored.replay_after);
  totals_->replayed_shards += shards.size();
  for (const DoneShard& done : shards) {
    totals_->redelivered_minibatches += ledger.MinibatchesOf(done.shard);
  }
  const size_t evaluations = leasing_->EndOutdatedEvaluations(shards);
  books_->Say(at, "partitions-restored", "",
              fmt::format("{}: {} {}, {} again{} (restore epoch {})", why,
                          CountText(restored.partitions, "partition"),
                          HowRestored(restored.partitions, books_->totals.snapshots_accepted > 0),
                          CountText(shards.size(), "DONE shard runs", "DONE shards run"),
                          evaluations == 0
                              ? ""
                              : fmt::format(", {} evaluate shard{} afterwards", evaluations,
                                            evaluations == 1 ? " begins again" : "s begin again"),
                          books_->partitions.restore_epoch().value()));
}

void Snapshots::LoseParts(const PartitionTable::Restored& restored, const std::string& why,
                          StepTime at) {
  const Ledger& ledger = books_->ledger;
  uint64_t shards = 0;
  for (const DoneShard& done :
       ledger.pushed().PushedAfter(restored.replay_after, ledger.queue().done())) {
    // An evaluation has pushed nothing.
    if (ledger.IsEvaluate(done.shard)) continue;
    ledger_->LoseParts(done);
    ++shards;
    totals_->redelivered_minibatches += ledger.MinibatchesOf(done.shard);
  }
  totals_->replayed_shards += shards;
  books_->Say(at, "partitions-restored", "",
              fmt::format("{}: {} {}, the group pushes {} again (restore epoch {})", why,
                          CountText(restored.partitions, "partition"),
                          HowRestored(restored.partitions, books_->totals.snapshots_accepted > 0),
                          CountText(shards, "step"), books_->partitions.restore_epoch().value()));
}

void Snapshots::Ask(ServerId server, ServerIncarnation incarnation, Hurry hurry, TimePoint now) {
  const CoreOptions& options = books_->options;
  const ShardQueue& queue = books_->ledger.queue();
  const bool first = queue.committed_count() == 0 && !queue.done().empty();
  const std::chrono::milliseconds whole = options.snapshot_interval;
  const auto interval = first ? std::min(whole, std::max(whole / 10, kFirstIntervalMin)) : whole;
  partitions_->AskSnapshots(
      server, incarnation,
      {books_->ledger.done_seq(), now, interval, options.snapshot_timeout, hurry.all, hurry.goal,
       leasing_->table().train_count() > 0 || options.group.has_value()});
}

}  // namespace muster
