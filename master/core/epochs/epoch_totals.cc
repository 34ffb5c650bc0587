#include "master/core/epochs/epoch_totals.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "master/core/epochs/epoch_thinning.h"
#include "proto/status/metric_trend.h"

namespace muster {

uint64_t EpochTotals::Restore(const DurableState& state) {
  uint64_t rejected = 0;
  for (const auto& [dataset, record] : state.whole_epochs) {
    thinned_rejects_[dataset] = record.rejected_records;
    rejected += record.rejected_records;
  }
  for (const auto& [key, record] : state.epochs) {
    totals_[key] = {record.records_committed, 0, std::make_shared<ShardMetrics>(record.metrics)};
    rejected += record.metrics.rejected_records;
  }
  return rejected;
}

void EpochTotals::AddDone(const ShardId& shard, uint64_t records) {
  totals_[{shard.dataset, shard.epoch}].records_done += records;
}

void EpochTotals::TakeBack(const ShardId& shard, uint64_t records) {
  Totals& totals = totals_[{shard.dataset, shard.epoch}];
  MUSTER_CHECK_MSG(totals.records_done >= records, ToString(shard));
  totals.records_done -= records;
}

void EpochTotals::Commit(const ShardId& shard, const ShardMetrics& metrics, uint64_t records) {
  const Key epoch{shard.dataset, shard.epoch};
  TakeBack(shard, records);
  totals_[epoch].records_committed += records;
  MergeNamed(shard, metrics);
  dirty_.insert(epoch);
}

void EpochTotals::MergeNamed(const ShardId& shard, const ShardMetrics& metrics) {
  // Metrics of a shard that may run again would be merged twice.
  MUSTER_CHECK_MSG(queue_.StateOf(shard) == ShardState::kCommitted, ToString(shard));
  const Key epoch{shard.dataset, shard.epoch};
  Totals& totals = totals_[epoch];
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
  const auto found = totals_.find({dataset, epoch});
  if (found != totals_.end()) return found->second.records_committed;
  return IsWhole({dataset, epoch}) ? plan_[dataset.value()].records : 0;
}

uint64_t EpochTotals::RecordsDone(DatasetId dataset, EpochIndex epoch) const {
  const auto found = totals_.find({dataset, epoch});
  const uint64_t done = found == totals_.end() ? 0 : found->second.records_done;
  return done + RecordsCommitted(dataset, epoch);
}

std::shared_ptr<const ShardMetrics> EpochTotals::Metrics(DatasetId dataset,
                                                         EpochIndex epoch) const {
  const auto found = totals_.find({dataset, epoch});
  if (found == totals_.end()) return nullptr;
  found->second.shared = true;
  return found->second.metrics;
}

std::ranges::subrange<EpochTotals::ByEpoch::const_iterator> EpochTotals::Of(
    DatasetId dataset) const {
  const DatasetId next(dataset.value() + 1);
  return {totals_.lower_bound({dataset, EpochIndex(0)}),
          totals_.lower_bound({next, EpochIndex(0)})};
}

std::vector<EpochIndex> EpochTotals::KnownEpochs(DatasetId dataset) const {
  std::vector<EpochIndex> epochs;
  for (const auto& [key, totals] : Of(dataset)) epochs.push_back(key.second);
  return epochs;
}

uint64_t EpochTotals::ThinnedEpochs(DatasetId dataset) const {
  const auto known = Of(dataset);
  const auto whole =
      std::ranges::count_if(known, [this](const auto& one) { return IsWhole(one.first); });
  return queue_.WholeEpochs(dataset).count() - static_cast<uint64_t>(whole);
}

std::set<EpochIndex> EpochTotals::BestEpochs(DatasetId dataset, size_t metrics_max) const {
  std::map<std::string, std::pair<double, EpochIndex>> best;
  const bool overlaps = options_.evaluation == Evaluation::kOverlapping;
  for (const auto& [key, totals] : Of(dataset)) {
    const ShardMetrics& metrics = *totals.metrics;
    const bool compared =
        metrics.minibatches_again == 0 && (metrics.records_later == 0 || overlaps);
    if (!compared || !IsWhole(key)) continue;
    for (const auto& [name, value] : ValuesOf(metrics)) {
      const Better better = BetterOf(name);
      if (better == Better::kUnknown || !std::isfinite(value)) continue;
      const auto [known, is_first] = best.try_emplace(name, value, key.second);
      const double than = known->second.first;
      const bool gains = better == Better::kHigher ? value > than : value < than;
      if (!is_first && gains) known->second = {value, key.second};
    }
  }
  std::set<EpochIndex> epochs;
  for (const auto& [name, one] : best | std::views::take(metrics_max)) epochs.insert(one.second);
  return epochs;
}

void EpochTotals::Thin(const Key& epoch) {
  const auto found = totals_.find(epoch);
  const Totals& totals = found->second;
  MUSTER_CHECK(totals.records_done == 0);
  MUSTER_CHECK(totals.records_committed == plan_[epoch.first.value()].records);
  thinned_rejects_[epoch.first] += totals.metrics->rejected_records;
  totals_.erase(found);
  dirty_.erase(epoch);
  erased_.push_back({epoch.first, epoch.second});
}

void EpochTotals::ThinOut(size_t most, const std::set<EpochIndex>& needed) {
  for (uint32_t i = 0; i < plan_.size(); ++i) {
    const DatasetId dataset(i);
    if (queue_.epochs(dataset) <= most) continue;
    const std::vector<EpochIndex> known = KnownEpochs(dataset);
    if (known.size() <= most) continue;
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
    mutations->push_back(
        WholeEpochsRecord{dataset, queue_.WholeEpochs(dataset), thinned_rejects_[dataset]});
  }
  for (const Key& key : dirty_) {
    const Totals& totals = totals_.at(key);
    mutations->push_back(EpochRecord{key.first, key.second, queue_.Committed(key.first, key.second),
                                     totals.records_committed, *totals.metrics});
  }
  dirty_.clear();
}

}  // namespace muster
