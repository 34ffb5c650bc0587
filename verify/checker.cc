#include "verify/checker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "verify/workload/contributions.h"

namespace muster::verify {
namespace {

/// Float32 holds every whole number up to here.
constexpr float kExactMax = 1 << 24;

std::string ToText(const ShardName& shard) {
  return fmt::format("{}/{}/{}", shard.dataset, shard.epoch, shard.index);
}

/// The value as a whole number; none if it is not one.
std::optional<int64_t> Whole(float value) {
  if (!std::isfinite(value) || value != std::nearbyint(value) || std::abs(value) > kExactMax) {
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

/// How often each epoch of a record appears in its row of `ids`.
std::string EffectsText(int64_t value, uint32_t epochs) {
  std::vector<int64_t> effects;
  for (uint32_t e = 0; e < epochs; ++e)
    effects.push_back(value >> (kEpochBits * e) & kEpochDigitMax);
  return fmt::format("{} ({} effects by epoch)", value, fmt::join(effects, ", "));
}

/// One comparison, table by table.
class Comparison {
 public:
  Comparison(const Workload& workload, const AttemptLog& attempts, const Ledger& ledger)
      : workload_(workload), attempts_(attempts), ledger_(ledger) {
    verdict_.attempts = attempts.attempts();
    verdict_.redelivered = attempts.redelivered();
    verdict_.redelivered_minibatches = attempts.redelivered_minibatches();
    for (const Ledger::Epoch& epoch : ledger.epochs) verdict_.acknowledged += epoch.committed;
  }

  void CompareIds(const SparseRows& table);
  void CompareMixed(const Weights& weights);
  void CompareLedger();
  Verdict Take() { return std::move(verdict_); }

 private:
  /// Rows by key.
  using Rows = std::map<uint64_t, std::vector<double>>;

  void CompareSums(const std::string& name, const SparseRows& table, const Rows& expected,
                   float initial);
  void CompareRow(const std::string& name, uint64_t key, std::span<const double> expected,
                  std::span<const float> found, float initial);
  void CompareId(uint64_t id, float found, std::vector<uint64_t>* missing);
  void Wrong(const std::string& table, uint64_t key, std::string expected, std::string found);
  void Disagree(std::string text) { verdict_.disagreements.push_back(std::move(text)); }
  uint64_t committed(uint32_t epoch) const {
    return epoch < ledger_.epochs.size() ? ledger_.epochs[epoch].committed : 0;
  }

  const Workload& workload_;
  const AttemptLog& attempts_;
  const Ledger& ledger_;
  Verdict verdict_;
};

void Comparison::Wrong(const std::string& table, uint64_t key, std::string expected,
                       std::string found) {
  ++verdict_.wrong_rows;
  if (verdict_.samples.size() < Verdict::kSamplesMax) {
    verdict_.samples.push_back({table, key, std::move(expected), std::move(found)});
  }
}

void Comparison::CompareId(uint64_t id, float found, std::vector<uint64_t>* missing) {
  int64_t right = 0;
  for (uint32_t e = 0; e < workload_.epochs; ++e) right |= int64_t{1} << (kEpochBits * e);
  const std::optional<int64_t> value = Whole(found);
  if (!value.has_value() || *value < 0) {
    return Wrong("ids", id, fmt::format("{}", right), fmt::format("{}", found));
  }
  for (uint32_t e = 0; e < workload_.epochs; ++e) {
    const int64_t effects = *value >> (kEpochBits * e) & kEpochDigitMax;
    if (effects == 0) ++(*missing)[e];
    if (effects > 1) verdict_.duplicated += static_cast<uint64_t>(effects - 1);
    if (effects > 0 && !attempts_.began(id, e)) ++verdict_.unexpected;
  }
  // Of epochs that the job does not have.
  verdict_.unexpected += static_cast<uint64_t>(*value >> (kEpochBits * workload_.epochs));
  if (*value != right) {
    Wrong("ids", id, EffectsText(right, workload_.epochs), EffectsText(*value, workload_.epochs));
  }
}

void Comparison::CompareIds(const SparseRows& table) {
  std::vector<uint64_t> missing(workload_.epochs);
  std::vector<bool> seen(workload_.records);
  for (size_t i = 0; i < table.keys.size(); ++i) {
    const uint64_t id = table.keys[i];
    ++verdict_.rows;
    if (id >= workload_.records || seen[id]) {
      ++verdict_.unexpected;
      Wrong("ids", id, "no such row", fmt::format("{}", table.values[i]));
      continue;
    }
    seen[id] = true;
    CompareId(id, table.values[i], &missing);
  }
  for (uint64_t id = 0; id < workload_.records; ++id) {
    if (seen[id]) continue;
    for (uint64_t& count : missing) ++count;
    Wrong("ids", id, "a row", "no row");
  }
  // Effects that are not acknowledged may be missing.
  for (uint32_t e = 0; e < workload_.epochs; ++e) {
    const uint64_t open = workload_.records - std::min(workload_.records, committed(e));
    verdict_.lost += missing[e] - std::min(missing[e], open);
  }
}

void Comparison::CompareRow(const std::string& name, uint64_t key, std::span<const double> expected,
                            std::span<const float> found, float initial) {
  ++verdict_.rows;
  if (std::ranges::equal(expected, found, [initial](double right, float value) {
        return static_cast<double>(value) == right + initial;
      })) {
    return;
  }
  const std::optional<int64_t> count = Whole(found[0] - initial);
  const int64_t right = static_cast<int64_t>(expected[0]);
  if (count.has_value() && *count < right) verdict_.lost += static_cast<uint64_t>(right - *count);
  if (count.has_value() && *count > right) {
    verdict_.duplicated += static_cast<uint64_t>(*count - right);
  }
  std::vector<double> sums(expected.begin(), expected.end());
  for (double& sum : sums) sum += initial;
  Wrong(name, key, fmt::format("{}", fmt::join(sums, " ")),
        fmt::format("{}", fmt::join(found, " ")));
}

void Comparison::CompareSums(const std::string& name, const SparseRows& table, const Rows& expected,
                             float initial) {
  const size_t dim = expected.empty() ? 1 : expected.begin()->second.size();
  Rows missing = expected;
  for (size_t i = 0; i < table.keys.size(); ++i) {
    const auto right = missing.extract(table.keys[i]);
    const std::span<const float> found = table.values.subspan(i * dim, dim);
    if (!right.empty()) {
      CompareRow(name, table.keys[i], right.mapped(), found, initial);
      continue;
    }
    ++verdict_.rows;
    ++verdict_.unexpected;
    Wrong(name, table.keys[i], "no such row", fmt::format("{}", fmt::join(found, " ")));
  }
  for (const auto& [key, row] : missing) {
    verdict_.lost += static_cast<uint64_t>(row[0]);
    Wrong(name, key, fmt::format("{}", fmt::join(row, " ")), "no row");
  }
}

void Comparison::CompareMixed(const Weights& weights) {
  Rows buckets;
  Rows wide;
  std::vector<double> totals(kTotalsSize);
  // All epochs add the same to these tables.
  const auto add = [this](std::vector<double>* row, std::span<const float> added) {
    row->resize(added.size());
    for (size_t j = 0; j < added.size(); ++j) {
      (*row)[j] += static_cast<double>(added[j]) * workload_.epochs;
    }
  };
  for (uint64_t id = 0; id < workload_.records; ++id) {
    const Contribution added = ContributionOf(id, 0);
    add(&buckets[added.bucket_key], added.buckets);
    add(&wide[added.wide_key], added.wide);
    add(&totals, added.totals);
  }
  CompareSums("buckets", weights.buckets, buckets, kBucketsInitial);
  CompareSums("wide", weights.wide, wide, 0);
  CompareRow("totals", 0, totals, weights.totals, 0);
}

void Comparison::CompareLedger() {
  if (ledger_.epochs.size() != workload_.epochs) {
    Disagree(fmt::format("the ledger has {} epochs, but the job has {}", ledger_.epochs.size(),
                         workload_.epochs));
  }
  const double mean = static_cast<double>(workload_.records - 1) / 2;
  for (uint32_t e = 0; e < std::min<size_t>(workload_.epochs, ledger_.epochs.size()); ++e) {
    const Ledger::Epoch& epoch = ledger_.epochs[e];
    if (epoch.expected != workload_.records || epoch.committed != workload_.records) {
      Disagree(
          fmt::format("epoch {}: the ledger has {} of {} records committed, but the input has {}",
                      e, epoch.committed, epoch.expected, workload_.records));
    }
    if (epoch.committed > attempts_.begun(e)) {
      Disagree(fmt::format("epoch {}: the ledger has {} records committed, but workers began {}", e,
                           epoch.committed, attempts_.begun(e)));
    }
    if (epoch.mean_id != mean) {
      Disagree(fmt::format("epoch {}: the metric `id` is {}, but the input's mean is {}", e,
                           epoch.mean_id, mean));
    }
  }
  const uint64_t counted = ledger_.redelivered_minibatches;
  const uint64_t seen = attempts_.redelivered_minibatches();
  if (counted == 0 && seen > ledger_.redelivered_unseen_max) {
    Disagree(
        fmt::format("the ledger counts no re-delivered minibatch, but workers count {}", seen));
  } else if (std::max(counted, seen) - std::min(counted, seen) > ledger_.redelivered_tolerance) {
    Disagree(fmt::format(
        "the ledger counts {} re-delivered minibatches, but workers count {}; kills and "
        "pauses explain a difference of at most {}",
        counted, seen, ledger_.redelivered_tolerance));
  }
  for (const std::string& text : attempts_.contradictions()) Disagree(text);
}

}  // namespace

AttemptLog::AttemptLog(const Workload& workload)
    : workload_(workload), times_(workload.records * workload.epochs), begun_(workload.epochs) {
  MUSTER_CHECK(workload.epochs <= kEpochsMax);
}

void AttemptLog::Contradict(const Attempt& attempt, const std::string& what) {
  if (contradictions_.size() >= kContradictionsMax) return;
  contradictions_.push_back(
      fmt::format("shard {}, step {}: {}", ToText(attempt.shard), attempt.step, what));
}

void AttemptLog::Add(const Attempt& attempt) {
  const uint32_t epoch = attempt.shard.epoch;
  attempts_ += attempt.ids.size();
  if (epoch >= workload_.epochs) return Contradict(attempt, "the job has no such epoch");
  // The sum of hashes does not depend on the order, and changes if a record occurs twice.
  Minibatch seen{.records = attempt.ids.size()};
  for (const uint64_t id : attempt.ids) seen.records_hash += Mix64(id + 1);
  const auto [before, first] =
      minibatches_.try_emplace(std::pair(attempt.shard, attempt.step), seen);
  if (!first) {
    ++redelivered_minibatches_;
    if (before->second.records != seen.records ||
        before->second.records_hash != seen.records_hash) {
      Contradict(attempt, "it had other records when it ran before");
    }
  }
  for (const uint64_t id : attempt.ids) {
    if (id >= workload_.records) {
      Contradict(attempt, fmt::format("record {} is not in the input", id));
      continue;
    }
    uint32_t& times = times_[Place(id, epoch)];
    if (times++ == 0) {
      ++begun_[epoch];
      continue;
    }
    ++redelivered_;
    if (first) Contradict(attempt, fmt::format("record {} is also in another minibatch", id));
  }
}

bool Verdict::ok() const {
  return lost == 0 && unexpected == 0 && duplicated == 0 && wrong_rows == 0 &&
         disagreements.empty();
}

Verdict Check(const Workload& workload, const AttemptLog& attempts, const Ledger& ledger,
              const Weights& weights) {
  Comparison comparison(workload, attempts, ledger);
  comparison.CompareIds(weights.ids);
  comparison.CompareMixed(weights);
  comparison.CompareLedger();
  return comparison.Take();
}

}  // namespace muster::verify
