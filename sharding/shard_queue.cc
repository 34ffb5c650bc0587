#include "sharding/shard_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sharding/dataset_mix.h"

namespace muster {

ShardQueue::ShardQueue(std::vector<QueueDataset> datasets, Evaluation evaluation)
    : datasets_(std::move(datasets)), evaluation_(evaluation) {
  uint32_t trained = 0;
  for (const QueueDataset& dataset : datasets_) {
    if (dataset.mode == DatasetMode::kTrain) trained = std::max(trained, dataset.epochs);
  }
  epochs_max_ = std::max<uint32_t>(trained, 1);
  for (QueueDataset& dataset : datasets_) {
    if (dataset.mode == DatasetMode::kEvaluate) dataset.epochs = epochs_max_;
    if (dataset.mode == DatasetMode::kPredict) dataset.epochs = 1;
    if (dataset.open) {
      MUSTER_CHECK(dataset.mode == DatasetMode::kTrain && dataset.epochs == 1);
      ++open_count_;
    }
    shard_count_ += dataset.epochs * dataset.shards;
  }
  begun_.resize(datasets_.size());
}

void ShardQueue::AddShards(DatasetId dataset, uint64_t count) {
  MUSTER_CHECK(dataset.value() < datasets_.size());
  QueueDataset& grown = datasets_[dataset.value()];
  MUSTER_CHECK(grown.open);
  grown.shards += count;
  shard_count_ += count;
  if (count > 0) train_frontier_ = 0;
}

void ShardQueue::Close(DatasetId dataset) {
  if (!std::exchange(datasets_[dataset.value()].open, false)) return;
  MUSTER_CHECK(open_count_ > 0);
  --open_count_;
}

void ShardQueue::EndAfter(uint32_t epochs) {
  MUSTER_CHECK(epochs > 0);
  for (uint32_t i = 0; i < datasets_.size(); ++i) {
    QueueDataset& dataset = datasets_[i];
    if (dataset.epochs <= epochs) continue;
    auto& [begun, whole, of_whole, trained] = begun_[i];
    MUSTER_CHECK(whole.empty() || whole.intervals().rbegin()->second <= epochs);
    const auto later = begun.lower_bound(epochs);
    for (auto one = later; one != begun.end(); ++one) MUSTER_CHECK(one->second.cursor == 0);
    begun.erase(later, begun.end());
    shard_count_ -= (dataset.epochs - epochs) * dataset.shards;
    dataset.epochs = epochs;
  }
  epochs_max_ = std::min(epochs_max_, epochs);
}

bool ShardQueue::ValidEpoch(DatasetId dataset, EpochIndex epoch) const {
  return dataset.value() < datasets_.size() && epoch.value() < datasets_[dataset.value()].epochs;
}

bool ShardQueue::Valid(const ShardId& shard) const {
  return ValidEpoch(shard.dataset, shard.epoch) &&
         shard.index.value() < datasets_[shard.dataset.value()].shards;
}

const ShardQueue::Epoch* ShardQueue::Find(DatasetId dataset, EpochIndex epoch) const {
  MUSTER_CHECK(ValidEpoch(dataset, epoch));
  const BegunEpochs& begun = begun_[dataset.value()];
  const auto found = begun.epochs.find(epoch.value());
  if (found != begun.epochs.end()) return &found->second;
  return begun.whole.Contains(epoch.value()) ? &begun.of_whole : nullptr;
}

ShardQueue::Epoch& ShardQueue::At(DatasetId dataset, EpochIndex epoch) {
  MUSTER_CHECK(ValidEpoch(dataset, epoch));
  BegunEpochs& begun = begun_[dataset.value()];
  MUSTER_CHECK(!begun.whole.Contains(epoch.value()));
  return begun.epochs[epoch.value()];
}

void ShardQueue::SettleWhole(DatasetId dataset, EpochIndex epoch) {
  const QueueDataset& of = datasets_[dataset.value()];
  BegunEpochs& begun = begun_[dataset.value()];
  const Epoch& at = begun.epochs.at(epoch.value());
  if (of.open || at.committed.count() != of.shards) return;
  MUSTER_CHECK(at.cursor == of.shards && at.todo.empty() && at.failed.empty() && at.done == 0);
  begun.of_whole.cursor = of.shards;
  begun.of_whole.committed = at.committed;
  begun.epochs.erase(epoch.value());
  begun.whole.Add(epoch.value());
}

void ShardQueue::RestoreWhole(DatasetId dataset, const IntervalSet& epochs) {
  const QueueDataset& of = datasets_[dataset.value()];
  BegunEpochs& begun = begun_[dataset.value()];
  MUSTER_CHECK(!of.open && of.shards > 0 && begun.whole.empty() && begun.epochs.empty());
  begun.whole = epochs;
  begun.of_whole.cursor = of.shards;
  begun.of_whole.committed.Add(0, of.shards);
  committed_count_ += epochs.count() * of.shards;
}

void ShardQueue::RestoreCommitted(DatasetId dataset, EpochIndex epoch, const IntervalSet& shards) {
  if (begun_[dataset.value()].whole.Contains(epoch.value())) return;
  Epoch& at = At(dataset, epoch);
  MUSTER_CHECK(at.committed.empty());
  at.committed = shards;
  committed_count_ += shards.count();
  if (!shards.empty()) {
    at.cursor = std::max(at.cursor, shards.intervals().rbegin()->second);
    MUSTER_CHECK(at.cursor <= datasets_[dataset.value()].shards);
  }
}

void ShardQueue::RestoreDone(const DoneShard& done) {
  MUSTER_CHECK(Valid(done.shard));
  Epoch& at = At(done.shard.dataset, done.shard.epoch);
  at.cursor = std::max(at.cursor, done.shard.index.value() + 1);
  ++at.done;
  done_.Add(done);
}

void ShardQueue::RestoreFailed(const ShardId& shard) {
  MUSTER_CHECK(Valid(shard));
  Epoch& at = At(shard.dataset, shard.epoch);
  at.cursor = std::max(at.cursor, shard.index.value() + 1);
  MUSTER_CHECK(at.failed.insert(shard.index.value()).second);
  ++failed_count_;
}

void ShardQueue::FinishRestore() {
  for (BegunEpochs& begun : begun_) {
    for (auto& [number, epoch] : begun.epochs) {
      if (epoch.cursor > 0) epoch.todo.Add(0, epoch.cursor);
      for (const auto& [begin, end] : epoch.committed.intervals()) epoch.todo.Remove(begin, end);
      for (uint64_t index : epoch.failed) epoch.todo.Remove(index, index + 1);
    }
  }
  for (const DoneShard& done : done_) {
    const uint64_t index = done.shard.index.value();
    At(done.shard.dataset, done.shard.epoch).todo.Remove(index, index + 1);
  }
  for (uint32_t i = 0; i < begun_.size(); ++i) {
    const std::map<uint32_t, Epoch>& epochs = begun_[i].epochs;
    for (auto at = epochs.begin(); at != epochs.end();) {
      SettleWhole(DatasetId(i), EpochIndex((at++)->first));
    }
  }
}

ShardState ShardQueue::StateOf(const ShardId& shard) const {
  MUSTER_CHECK(Valid(shard));
  const Epoch* epoch = Find(shard.dataset, shard.epoch);
  const uint64_t index = shard.index.value();
  if (epoch == nullptr || index >= epoch->cursor) return ShardState::kTodo;
  if (epoch->todo.Contains(index)) return ShardState::kTodo;
  if (done_.Contains(shard)) return ShardState::kDone;
  if (epoch->committed.Contains(index)) return ShardState::kCommitted;
  if (epoch->failed.contains(index)) return ShardState::kFailed;
  return ShardState::kLeased;
}

std::optional<DoneShard> ShardQueue::FindDone(const ShardId& shard) const {
  const DoneShard* const done = done_.Find(shard);
  return done == nullptr ? std::nullopt : std::optional(*done);
}

std::optional<uint64_t> ShardQueue::FirstTodo(DatasetId dataset, EpochIndex epoch) const {
  const Epoch* at = Find(dataset, epoch);
  const uint64_t cursor = at == nullptr ? 0 : at->cursor;
  if (at != nullptr) {
    for (const auto& [begin, end] : at->todo.intervals()) {
      uint64_t index = begin;
      while (index < end && at->deferred.contains(index)) ++index;
      if (index < end) return index;
    }
  }
  if (cursor < datasets_[dataset.value()].shards) return cursor;
  if (at != nullptr && !at->deferred.empty()) return *at->deferred.begin();
  return std::nullopt;
}

bool ShardQueue::TrainedFor(uint32_t pass) const {
  for (uint32_t i = 0; i < datasets_.size(); ++i) {
    const QueueDataset& dataset = datasets_[i];
    if (dataset.mode != DatasetMode::kTrain || dataset.epochs == 0) continue;
    if (dataset.open) return false;
    // Includes shards of earlier epochs, because the weights lack something of a replayed one.
    uint32_t& frontier = begun_[i].trained_frontier;
    if (!AllUpTo(DatasetId(i), frontier, EpochIndex(pass), &Epoch::trained)) return false;
    frontier = std::max(frontier, pass + 1);
  }
  return true;
}

std::optional<ShardId> ShardQueue::PeekMode(DatasetMode mode, uint32_t* frontier) const {
  const uint32_t end =
      mode == DatasetMode::kTrain ? std::min(epochs_max_, epochs_open_) : epochs_max_;
  for (uint32_t epoch = *frontier; epoch < end; ++epoch) {
    if (const std::optional<ShardId> shard = PeekEpoch(mode, epoch)) {
      const bool may_begin =
          mode == DatasetMode::kEvaluate ? TrainedFor(epoch) : EvaluatedBefore(epoch);
      return may_begin ? shard : std::nullopt;
    }
    *frontier = epoch + 1;
  }
  return std::nullopt;
}

bool ShardQueue::EvaluatedBefore(uint32_t epoch) const {
  if (evaluation_ == Evaluation::kOverlapping || epoch == 0) return true;
  return evaluating_count_ == 0 && evaluate_frontier_ >= std::min(epoch, epochs_max_);
}

std::optional<ShardId> ShardQueue::PeekEpoch(DatasetMode mode, uint32_t epoch) const {
  std::optional<ShardId> next;
  double next_turn = 0;
  for (uint32_t i = 0; i < datasets_.size(); ++i) {
    const QueueDataset& dataset = datasets_[i];
    if (dataset.mode != mode || epoch >= dataset.epochs) continue;
    const std::optional<uint64_t> index = FirstTodo(DatasetId(i), EpochIndex(epoch));
    if (!index.has_value()) continue;
    const ShardId shard{DatasetId(i), EpochIndex(epoch), ShardIndex(*index)};
    if (dataset.open || mode != DatasetMode::kTrain) return shard;
    const double turn = DatasetMix{.shards = dataset.shards, .pace = dataset.pace}.TurnOf(*index);
    if (next.has_value() && turn >= next_turn) continue;
    next = shard;
    next_turn = turn;
  }
  return next;
}

std::optional<ShardId> ShardQueue::PeekPredict() const {
  return TrainedFor(epochs_max_ - 1) ? PeekEpoch(DatasetMode::kPredict, 0) : std::nullopt;
}

std::optional<ShardId> ShardQueue::Peek() const {
  std::optional<ShardId> shard = PeekMode(DatasetMode::kEvaluate, &evaluate_frontier_);
  if (!shard.has_value()) shard = PeekMode(DatasetMode::kTrain, &train_frontier_);
  return shard.has_value() ? shard : PeekPredict();
}

bool ShardQueue::AnyEvaluate() const {
  return std::ranges::any_of(datasets_, [](const QueueDataset& dataset) {
    return dataset.mode == DatasetMode::kEvaluate && dataset.shards > 0;
  });
}

uint64_t ShardQueue::LeftBeforeWait() const {
  constexpr uint64_t kMany = std::numeric_limits<uint64_t>::max();
  const std::optional<ShardId> next = Peek();
  if (!next.has_value()) return 0;
  const DatasetMode mode = datasets_[next->dataset.value()].mode;
  const uint32_t epoch = next->epoch.value();
  const bool waits = mode != DatasetMode::kTrain || epoch + 1 >= epochs_max_ ||
                     epoch + 1 >= epochs_open_ ||
                     (evaluation_ == Evaluation::kAtTheEnd && AnyEvaluate());
  if (!waits || open_count_ > 0) return kMany;
  uint64_t left = 0;
  for (uint32_t i = 0; i < datasets_.size(); ++i) {
    if (datasets_[i].mode != mode || epoch >= datasets_[i].epochs) continue;
    const EpochCounts counts = Counts(DatasetId(i), EpochIndex(epoch));
    left += counts.shards - counts.leased - counts.done - counts.committed - counts.failed;
  }
  return left;
}

std::optional<ShardId> ShardQueue::TakeNext() {
  std::optional<ShardId> shard = Peek();
  if (shard.has_value()) Take(*shard);
  return shard;
}

void ShardQueue::Take(const ShardId& shard) {
  MUSTER_CHECK_MSG(StateOf(shard) == ShardState::kTodo, ToString(shard));
  Epoch& at = At(shard.dataset, shard.epoch);
  const uint64_t index = shard.index.value();
  ++leased_count_;
  if (ModeOf(shard) == DatasetMode::kEvaluate) ++evaluating_count_;
  if (index < at.cursor) {
    at.todo.Remove(index, index + 1);
    at.deferred.erase(index);
  } else {
    if (index > at.cursor) at.todo.Add(at.cursor, index);
    at.cursor = index + 1;
  }
  CheckEpoch(shard.dataset, shard.epoch);
}

void ShardQueue::CheckEpoch(DatasetId dataset, EpochIndex epoch) const {
  const Epoch* const at = Find(dataset, epoch);
  MUSTER_CHECK(at != nullptr && at->cursor <= datasets_[dataset.value()].shards);
  const uint64_t known = at->todo.count() + at->done + at->committed.count() + at->failed.size();
  MUSTER_CHECK(known <= at->cursor && at->cursor - known <= leased_count_);
  MUSTER_CHECK(committed_count_ + failed_count_ + done_.size() + leased_count_ <= shard_count_);
}

void ShardQueue::Release(const ShardId& shard) {
  MUSTER_CHECK(leased_count_ > 0);
  --leased_count_;
  if (ModeOf(shard) != DatasetMode::kEvaluate) return;
  MUSTER_CHECK(evaluating_count_ > 0);
  --evaluating_count_;
}

void ShardQueue::AddTodo(const Run& run) {
  const ShardId& shard = run.first;
  const uint64_t begin = shard.index.value();
  Epoch& at = At(shard.dataset, shard.epoch);
  const uint64_t before = at.todo.count();
  at.todo.Add(begin, run.end);
  MUSTER_CHECK_MSG(run.end <= at.cursor && at.todo.count() == before + (run.end - begin),
                   ToString(shard));
  const DatasetMode mode = ModeOf(shard);
  if (mode == DatasetMode::kPredict) return;
  uint32_t& frontier = mode == DatasetMode::kEvaluate ? evaluate_frontier_ : train_frontier_;
  frontier = std::min(frontier, shard.epoch.value());
  uint32_t& trained = begun_[shard.dataset.value()].trained_frontier;
  trained = std::min(trained, shard.epoch.value());
}

void ShardQueue::Return(const ShardId& shard) {
  MUSTER_CHECK_MSG(StateOf(shard) == ShardState::kLeased, ToString(shard));
  Release(shard);
  AddTodo({shard, shard.index.value() + 1});
  CheckEpoch(shard.dataset, shard.epoch);
}

void ShardQueue::Defer(const ShardId& shard) {
  MUSTER_CHECK_MSG(StateOf(shard) == ShardState::kTodo, ToString(shard));
  Epoch& at = At(shard.dataset, shard.epoch);
  const uint64_t index = shard.index.value();
  // Above the cursor, nothing has run yet.
  if (!datasets_[shard.dataset.value()].open && index < at.cursor) at.deferred.insert(index);
}

void ShardQueue::SetDone(const DoneShard& done) {
  MUSTER_CHECK_MSG(StateOf(done.shard) == ShardState::kLeased, ToString(done.shard));
  Release(done.shard);
  done_.Add(done);
  ++At(done.shard.dataset, done.shard.epoch).done;
  CheckEpoch(done.shard.dataset, done.shard.epoch);
}

std::vector<ShardQueue::Run> ShardQueue::RunsOf(const std::vector<DoneShard>& shards) {
  std::vector<ShardId> sorted;
  sorted.reserve(shards.size());
  for (const DoneShard& done : shards) sorted.push_back(done.shard);
  std::ranges::sort(sorted);
  std::vector<Run> runs;
  for (const ShardId& shard : sorted) {
    const bool next = !runs.empty() && runs.back().first.dataset == shard.dataset &&
                      runs.back().first.epoch == shard.epoch &&
                      runs.back().end == shard.index.value();
    if (!next) runs.push_back({shard, shard.index.value()});
    ++runs.back().end;
  }
  return runs;
}

std::vector<DoneShard> ShardQueue::CommitUpTo(DoneSeq last, size_t most) {
  std::vector<DoneShard> result;
  while (result.size() < most && !done_.empty() && done_.first().seq <= last) {
    result.push_back(done_.TakeFirst());
  }
  for (const Run& run : RunsOf(result)) {
    Epoch& at = At(run.first.dataset, run.first.epoch);
    const uint64_t shards = run.end - run.first.index.value();
    const uint64_t before = at.committed.count();
    at.committed.Add(run.first.index.value(), run.end);
    MUSTER_CHECK_MSG(at.done >= shards && at.committed.count() == before + shards,
                     ToString(run.first));
    at.done -= shards;
    committed_count_ += shards;
    CheckEpoch(run.first.dataset, run.first.epoch);
    SettleWhole(run.first.dataset, run.first.epoch);
  }
  return result;
}

std::vector<DoneShard> ShardQueue::ReplayAfter(DoneSeq cut) {
  std::vector<DoneShard> result;
  while (!done_.empty() && done_.last().seq > cut) result.push_back(done_.TakeLast());
  std::ranges::reverse(result);
  for (const Run& run : RunsOf(result)) {
    Epoch& at = At(run.first.dataset, run.first.epoch);
    const uint64_t shards = run.end - run.first.index.value();
    MUSTER_CHECK_MSG(at.done >= shards, ToString(run.first));
    at.done -= shards;
    AddTodo(run);
    CheckEpoch(run.first.dataset, run.first.epoch);
  }
  return result;
}

void ShardQueue::SetFailed(const ShardId& shard) {
  MUSTER_CHECK_MSG(StateOf(shard) == ShardState::kLeased, ToString(shard));
  Release(shard);
  MUSTER_CHECK(At(shard.dataset, shard.epoch).failed.insert(shard.index.value()).second);
  ++failed_count_;
  CheckEpoch(shard.dataset, shard.epoch);
}

void ShardQueue::RetryFailed(const ShardId& shard) {
  MUSTER_CHECK_MSG(StateOf(shard) == ShardState::kFailed, ToString(shard));
  MUSTER_CHECK(At(shard.dataset, shard.epoch).failed.erase(shard.index.value()) == 1);
  MUSTER_CHECK(failed_count_ > 0);
  --failed_count_;
  AddTodo({shard, shard.index.value() + 1});
  CheckEpoch(shard.dataset, shard.epoch);
}

EpochCounts ShardQueue::Counts(DatasetId dataset, EpochIndex epoch) const {
  EpochCounts counts;
  counts.shards = datasets_[dataset.value()].shards;
  const Epoch* at = Find(dataset, epoch);
  if (at == nullptr) return counts;
  counts.done = at->done;
  counts.committed = at->committed.count();
  counts.failed = at->failed.size();
  MUSTER_CHECK(at->cursor >= at->todo.count() + counts.done + counts.committed + counts.failed);
  counts.leased = at->cursor - at->todo.count() - counts.done - counts.committed - counts.failed;
  return counts;
}

std::vector<ShardSpan> ShardQueue::Runs(DatasetId dataset, EpochIndex epoch, uint64_t begin,
                                        size_t runs_max) const {
  const uint64_t shards = datasets_[dataset.value()].shards;
  const Epoch* at = Find(dataset, epoch);
  std::vector<ShardSpan> runs;
  while (begin < shards) {
    ShardSpan run{begin, begin + 1, StateOf({dataset, epoch, ShardIndex(begin)})};
    if (at == nullptr || begin >= at->cursor) {
      run.end = shards;
    } else if (run.state == ShardState::kTodo || run.state == ShardState::kCommitted) {
      const IntervalSet& same = run.state == ShardState::kTodo ? at->todo : at->committed;
      run.end = std::prev(same.intervals().upper_bound(begin))->second;
    }
    if (!runs.empty() && runs.back().state == run.state) {
      runs.back().end = run.end;
    } else if (runs.size() == runs_max) {
      break;
    } else {
      runs.push_back(run);
    }
    begin = run.end;
  }
  return runs;
}

const IntervalSet& ShardQueue::Committed(DatasetId dataset, EpochIndex epoch) const {
  static const IntervalSet* const kEmpty = new IntervalSet();
  const Epoch* at = Find(dataset, epoch);
  return at == nullptr ? *kEmpty : at->committed;
}

bool ShardQueue::AllUpTo(DatasetId dataset, uint32_t from, EpochIndex epoch,
                         uint64_t (Epoch::*count)() const) const {
  const QueueDataset& of = datasets_[dataset.value()];
  if (of.shards == 0) return true;
  const BegunEpochs& begun = begun_[dataset.value()];
  const uint64_t end = std::min<uint64_t>(epoch.value() + uint64_t{1}, of.epochs);
  uint64_t next = from;
  const auto all_until = [&](uint64_t until) {
    for (; next < until; ++next) {
      const auto found = begun.epochs.find(static_cast<uint32_t>(next));
      if (found == begun.epochs.end() || (found->second.*count)() != of.shards) return false;
    }
    return true;
  };
  for (const auto& [first, last] : begun.whole.intervals()) {
    if (first >= end) break;
    if (!all_until(first)) return false;
    next = std::max(next, last);
  }
  return all_until(end);
}

bool ShardQueue::IsSettledUpTo(DatasetId dataset, EpochIndex epoch) const {
  // A DONE shard is not settled: a restore can undo it.
  return !IsOpen(dataset) && AllUpTo(dataset, 0, epoch, &Epoch::settled);
}

std::vector<ShardId> ShardQueue::FailedShards() const {
  std::vector<ShardId> result;
  for (uint32_t i = 0; i < begun_.size(); ++i) {
    for (const auto& [number, epoch] : begun_[i].epochs) {
      for (const uint64_t index : epoch.failed) {
        result.push_back({DatasetId(i), EpochIndex(number), ShardIndex(index)});
      }
    }
  }
  return result;
}

}  // namespace muster
