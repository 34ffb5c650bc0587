#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "muster/muster.h"
#include "verify/workload/contributions.h"

/// The tables of verify/workload, to which a member of a group pushes the whole numbers of its
/// records: a minibatch that is lost or doubled shows in the exported tables.
class GroupTables {
 public:
  explicit GroupTables(muster::Session& session)
      : ids_(session.SparseTable(
            {.name = "ids", .dim = muster::verify::kIdsDim, .optimizer = Sum()})),
        buckets_(session.SparseTable(
            {.name = "buckets",
             .dim = muster::verify::kBucketsDim,
             .optimizer = Sum(),
             .initializer = muster::Constant{.value = muster::verify::kBucketsInitial}})),
        wide_(session.SparseTable(
            {.name = "wide", .dim = muster::verify::kWideDim, .optimizer = Sum()})),
        totals_(session.DenseTable(
            {.name = "totals",
             .shape = {muster::verify::kTotalsRows, muster::verify::kTotalsColumns},
             .optimizer = Sum()})) {}

  void Need(muster::Minibatch& minibatch) const {
    minibatch.Need(buckets_, BucketKeys(minibatch));
    minibatch.Need(totals_);
  }
  /// False: a pulled row is not a whole number.
  bool Push(muster::Minibatch& minibatch) const {
    const std::vector<uint64_t> bucket_keys = BucketKeys(minibatch);
    for (const float value : minibatch.Pull(buckets_, bucket_keys).values()) {
      if (value != std::nearbyint(value)) return false;
    }
    for (const float value : minibatch.Pull(totals_).values()) {
      if (value != std::nearbyint(value)) return false;
    }
    if (minibatch.evaluate()) return true;
    std::array<float, muster::verify::kTotalsSize> totals{};
    for (const std::string_view record : minibatch.records()) {
      const uint64_t id = Number(record);
      const muster::verify::Contribution added =
          muster::verify::ContributionOf(id, minibatch.epoch());
      minibatch.Push(ids_, std::array{id}, added.ids);
      minibatch.Push(buckets_, std::array{added.bucket_key}, added.buckets);
      minibatch.Push(wide_, std::array{added.wide_key}, added.wide);
      for (size_t j = 0; j < totals.size(); ++j) totals[j] += added.totals[j];
    }
    minibatch.Push(totals_, totals);
    return true;
  }

 private:
  static muster::Sum Sum() { return {}; }
  static uint64_t Number(std::string_view record) {
    return std::strtoull(std::string(record).c_str(), nullptr, 10);
  }
  static std::vector<uint64_t> BucketKeys(muster::Minibatch& minibatch) {
    std::vector<uint64_t> keys;
    for (const std::string_view record : minibatch.records()) {
      keys.push_back(muster::verify::ContributionOf(Number(record), 0).bucket_key);
    }
    return keys;
  }

  muster::Table ids_, buckets_, wide_;
  muster::DenseTensor totals_;
};
