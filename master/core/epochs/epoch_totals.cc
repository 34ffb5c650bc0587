#include "master/core/epochs/epoch_totals.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string>
#include <utility>

#include "base/check.h"
#include "master/core/epochs/epoch_thinning.h"
#include "proto/status/metric_trend.h"

namespace muster {

uint64_t EpochTotals::Restore(const DurableState& state) {
  uint64_t rejected = 0;
  for (const auto& [dataset, record] : state.whole_epochs) {
    datasets_[dataset].thinned_rejects = record.rejected_records;
    datasets_[dataset].thinned = record.epochs.count();
    rejected += record.rejected_records;
  }
  for (const auto& [key, record] : state.epochs) {
    At(key) = {record.records_committed, 0, std::make_shared<ShardMetrics>(record.metrics)};
    const auto whole = state.whole_epochs.find(key.first);
    const bool of_whole =
        whole != state.whole_epochs.end() && whole->second.epochs.Contains(key.second.value());
    if (of_whole) --datasets_[key.first].thinned;
    rejected += record.metrics.rejected_records;
  }
  return rejected;
}

void EpochTotals::AddDone(const ShardId& shard, uint64_t records) {
  At({shard.dataset, shard.epoch}).records_done += records;
}

void EpochTotals::TakeBack(const ShardId& shard, uint64_t records) {
  Totals& totals = At({shard.dataset, shard.epoch});
  MUSTER_CHECK_MSG(totals.records_done >= records, ToString(shard));
  totals.records_done -= records;
}

void EpochTotals::Commit(const ShardId& shard, const ShardMetrics& metrics, uint64_t records) {
  const Key epoch{shard.dataset, shard.epoch};
  TakeBack(shard, records);
  At(epoch).records_committed += records;
  MergeNamed(shard, metrics);
  dirty_.insert(epoch);
}

void EpochTotals::MergeNamed(const ShardId& shard, const ShardMetrics& metrics) {
  // Metrics of a shard that may run again would be merged twice.
  MUSTER_CHECK_MSG(queue_.StateOf(shard) == ShardState::kCommitted, ToString(shard));
  const Key epoch{shard.dataset, shard.epoch};
  Totals& totals = At(epoch);
  ShardMetrics& into = *totals.OwnMetrics();
  const size_t names = into.means.size() + into.aucs.size();
  const size_t added = metrics.means.size() + metrics.aucs.size();
  if (names + added <= options_.metric_names) return Merge(&into, metrics);
  size_t room = options_.metric_names - std::min(names, options_.metric_names);
  bool dropped = false;
  const auto fits = [&](bool known) {
    if (known) return true;
    if (room == 0) return !(dropped = true);
    --room;
    return true;
  };
  ShardMetrics kept = metrics;
  std::erase_if(kept.means, [&](const auto& one) { return !fits(into.means.contains(one.first)); });
  std::erase_if(kept.aucs, [&](const auto& one) { return !fits(into.aucs.contains(one.first)); });
  const bool first = dropped && !std::exchange(totals.dropped, true);
  if (first && metrics_dropped_.size() < kDropsMax) metrics_dropped_.push_back(epoch);
  Merge(&into, kept);
}

ShardMetrics* EpochTotals::Totals::OwnMetrics() {
  if (std::exchange(shared, false)) metrics = std::make_shared<ShardMetrics>(*metrics);
  return metrics.get();
}

uint64_t EpochTotals::RecordsCommitted(DatasetId dataset, EpochIndex epoch) const {
  if (const Totals* const totals = Find(dataset, epoch)) return totals->records_committed;
  return IsWhole({dataset, epoch}) ? plan_[dataset.value()].records : 0;
}

uint64_t EpochTotals::RecordsDone(DatasetId dataset, EpochIndex epoch) const {
  const Totals* const totals = Find(dataset, epoch);
  const uint64_t done = totals == nullptr ? 0 : totals->records_done;
  return done + RecordsCommitted(dataset, epoch);
}

const EpochTotals::Totals* EpochTotals::Find(DatasetId dataset, EpochIndex epoch) const {
  const auto of = datasets_.find(dataset);
  if (of == datasets_.end()) return nullptr;
  const auto found = of->second.epochs.find(epoch);
  return found == of->second.epochs.end() ? nullptr : &found->second;
}

std::shared_ptr<const ShardMetrics> EpochTotals::Metrics(DatasetId dataset,
                                                         EpochIndex epoch) const {
  const Totals* const totals = Find(dataset, epoch);
  if (totals == nullptr) return nullptr;
  totals->shared = true;
  return totals->metrics;
}

std::vector<EpochIndex> EpochTotals::KnownEpochs(DatasetId dataset) const {
  const auto of = datasets_.find(dataset);
  if (of == datasets_.end()) return {};
  std::vector<EpochIndex> epochs;
  epochs.reserve(of->second.epochs.size());
  for (const auto& [epoch, totals] : of->second.epochs) epochs.push_back(epoch);
  return epochs;
}

uint64_t EpochTotals::ThinnedEpochs(DatasetId dataset) const {
  const auto of = datasets_.find(dataset);
  return of == datasets_.end() ? 0 : of->second.thinned;
}

std::set<EpochIndex> EpochTotals::BestEpochs(DatasetId dataset, size_t metrics_max) const {
  std::map<std::string, std::pair<double, EpochIndex>> best;
  const bool overlaps = options_.evaluation == Evaluation::kOverlapping;
  for (const auto& [epoch, totals] : datasets_.at(dataset).epochs) {
    const ShardMetrics& metrics = *totals.metrics;
    const bool compared =
        metrics.minibatches_again == 0 && (metrics.records_later == 0 || overlaps);
    if (!compared || !IsWhole({dataset, epoch})) continue;
    for (const auto& [name, value] : ValuesOf(metrics)) {
      const Better better = BetterOf(name);
      if (better == Better::kUnknown || !std::isfinite(value)) continue;
      const auto [known, is_first] = best.try_emplace(name, value, epoch);
      const double than = known->second.first;
      const bool gains = better == Better::kHigher ? value > than : value < than;
      if (!is_first && gains) known->second = {value, epoch};
    }
  }
  std::set<EpochIndex> epochs;
  for (const auto& [name, one] : best | std::views::take(metrics_max)) epochs.insert(one.second);
  return epochs;
}

void EpochTotals::Thin(const Key& epoch) {
  OfDataset& of = datasets_.at(epoch.first);
  const auto found = of.epochs.find(epoch.second);
  const Totals& totals = found->second;
  MUSTER_CHECK(totals.records_done == 0);
  MUSTER_CHECK(totals.records_committed == plan_[epoch.first.value()].records);
  of.thinned_rejects += totals.metrics->rejected_records;
  ++of.thinned;
  of.epochs.erase(found);
  dirty_.erase(epoch);
  erased_.push_back({epoch.first, epoch.second});
}

void EpochTotals::ThinOut(size_t most, const std::set<EpochIndex>& needed) {
  for (const auto& [dataset, of] : datasets_) {
    if (of.epochs.size() <= most) continue;
    const std::vector<EpochIndex> known = KnownEpochs(dataset);
    std::set<EpochIndex> kept = BestEpochs(dataset, most / 8);
    kept.insert(needed.begin(), needed.end());
    for (const EpochIndex epoch : OldEpochs(known, most)) {
      if (IsWhole({dataset, epoch}) && !kept.contains(epoch)) Thin({dataset, epoch});
    }
  }
}

void EpochTotals::Collect(std::vector<Mutation>* mutations) {
  std::set<DatasetId> thinned;
  for (const EraseEpoch& erase : erased_) {
    mutations->push_back(erase);
    thinned.insert(erase.dataset);
  }
  erased_.clear();
  // In the same batch: an epoch that is not in the journal at all would run again.
  for (const DatasetId dataset : thinned) {
    mutations->push_back(WholeEpochsRecord{dataset, queue_.WholeEpochs(dataset),
                                           datasets_.at(dataset).thinned_rejects});
  }
  for (const Key& key : dirty_) {
    const Totals& totals = datasets_.at(key.first).epochs.at(key.second);
    mutations->push_back(EpochRecord{key.first, key.second, queue_.Committed(key.first, key.second),
                                     totals.records_committed, *totals.metrics});
  }
  dirty_.clear();
}

}  // namespace muster
