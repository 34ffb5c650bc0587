#include "master/core/epoch_ends.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace muster {
namespace {

/// By what an epoch counts as better.
std::string RuleOf(const EpochEndOptions::StopEarly& stop) {
  return fmt::format("{}/{}/{}/{}", stop.metric.dataset.value(), stop.metric.name,
                     static_cast<int>(stop.metric.better), stop.min_delta);
}

}  // namespace

EpochEnds::EpochEnds(const Books* books, ShardQueue* queue, const KeptEpochs::Records& kept,
                     const Ended& ended)
    : books_(books),
      queue_(queue),
      options_(books->options.epoch_ends),
      kept_(kept, books->options.partitions),
      ended_(ended.epochs),
      gain_(ended.gain) {
  if (!options_.any()) return;
  if (options_.keep_best) kept_running_.emplace(*options_.keep_best, 0);
  if (const auto& stop = options_.stop_early) stop_running_.emplace(stop->metric, stop->min_delta);
  for (uint32_t e = ended_ + 1; e < books_->ledger.queue().epochs_max(); ++e) {
    if (HasBegun(EpochIndex(e))) ended_ = e;
  }
  ReadKeptCourse();
  Decide();
}

bool EpochEnds::HasBegun(EpochIndex epoch) const {
  const ShardQueue& queue = books_->ledger.queue();
  for (uint32_t i = 0; i < queue.dataset_count(); ++i) {
    if (!queue.ValidEpoch(DatasetId(i), epoch)) continue;
    const EpochCounts counts = queue.Counts(DatasetId(i), epoch);
    if (counts.done + counts.committed + counts.failed > 0) return true;
  }
  return false;
}

bool EpochEnds::IsOver(EpochIndex epoch) const {
  // FAILED shards of earlier ones may be tried again.
  const ShardQueue& queue = books_->ledger.queue();
  for (uint32_t i = 0; i < queue.dataset_count(); ++i) {
    // Predictions come after the last epoch, and are of none.
    if (books_->options.datasets[i].mode == DatasetMode::kPredict) continue;
    if (!queue.IsSettledUpTo(DatasetId(i), epoch)) return false;
  }
  return true;
}

void EpochEnds::Check(StepTime at) {
  if (!options_.any()) return;
  while (ended_ < books_->ledger.queue().epochs_max() && IsOver(EpochIndex(ended_))) End(at);
}

void EpochEnds::End(StepTime at) {
  const EpochIndex epoch(ended_++);
  ReadKeptCourse();
  if (options_.keeps()) KeepWeights(epoch, at);
  Decide();
  if (!stop_text_.empty()) books_->Say(at, "stopped-early", "", stop_text_);
}

void EpochEnds::Decide() {
  queue_->OpenEpochs(ended_ + 1);
  const ShardQueue& queue = books_->ledger.queue();
  if (!options_.stop_early || ended_ == 0) return;
  const EpochEndOptions::StopEarly& stop = *options_.stop_early;
  const MetricCourse& course =
      stop_running_->Read(books_->ledger.totals(), queue, ended_, FirstOfStop());
  gain_ = {course.best_epoch ? course.best_epoch->value() + 1 : 0, RuleOf(stop)};
  if (ended_ >= queue.epochs_max() || HasBegun(EpochIndex(ended_))) return;
  if (course.without_gain < stop.patience) return;
  stop_text_ = fmt::format(
      "stopped early after epoch {} of {}: {} of dataset '{}' got no better in {} evaluations in a "
      "row (spec.training.stopEarly)",
      ended_, queue.epochs_max(), stop.metric.name, books_->NameOf(stop.metric.dataset),
      course.without_gain);
  if (course.best_epoch.has_value()) {
    stop_text_ += fmt::format("; the best was {:.6g} after epoch {}", course.best,
                              course.best_epoch->value() + 1);
  }
  queue_->EndAfter(ended_);
}

std::optional<double> EpochEnds::ValueOf(EpochIndex epoch) const {
  if (!options_.keep_best) return std::nullopt;
  const auto metrics = books_->ledger.Metrics(options_.keep_best->dataset, epoch);
  if (metrics == nullptr) return std::nullopt;
  return FiniteMetric(*metrics, options_.keep_best->name);
}

void EpochEnds::ReadKeptCourse() {
  if (!kept_running_) return;
  const Ledger& ledger = books_->ledger;
  kept_course_ = kept_running_->Read(ledger.totals(), ledger.queue(), ended_);
}

uint32_t EpochEnds::FirstOfStop() const {
  const EpochEndOptions::StopEarly& stop = *options_.stop_early;
  // An epoch that was not enough better than one that is gone must not count as better now.
  const bool thinned = books_->ledger.totals().ThinnedEpochs(stop.metric.dataset) > 0;
  return thinned && gain_.epoch > 0 && gain_.rule == RuleOf(stop) ? gain_.epoch - 1 : 0;
}

std::set<EpochIndex> EpochEnds::Needed() const {
  std::set<EpochIndex> needed;
  for (const auto& [epoch, manifests] : kept_.epochs()) needed.insert(epoch);
  if (best().has_value()) needed.insert(*best());
  if (gain_.epoch > 0) needed.insert(EpochIndex(gain_.epoch - 1));
  return needed;
}

bool EpochEnds::IsEveryNth(EpochIndex epoch) const {
  return options_.keep_every > 0 && (epoch.value() + 1) % options_.keep_every == 0;
}

void EpochEnds::KeepWeights(EpochIndex epoch, StepTime at) {
  const bool is_best = best() == epoch;
  if (!is_best && !IsEveryNth(epoch)) return;
  kept_.Keep(epoch, books_->partitions);
  books_->Say(at, "weights-kept", "",
              fmt::format("the weights after epoch {} are kept{}", epoch.value() + 1,
                          is_best ? fmt::format(": the best {} so far, {:.6g}",
                                                options_.keep_best->name, kept_course_.best)
                                  : ""));
  DropWeights();
}

void EpochEnds::DropWeights() {
  std::vector<EpochIndex> dropped;
  uint32_t nths = 0;
  const auto& epochs = kept_.epochs();
  for (auto kept = epochs.rbegin(); kept != epochs.rend(); ++kept) {
    const bool nth = IsEveryNth(kept->first) && ++nths <= options_.keep_last;
    if (!nth && best() != kept->first) dropped.push_back(kept->first);
  }
  for (const EpochIndex epoch : dropped) {
    kept_.Drop(epoch, books_->partitions, &unused_files_);
  }
}

}  // namespace muster
