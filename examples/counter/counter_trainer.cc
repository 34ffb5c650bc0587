// A worker whose result is known beforehand: every record adds whole numbers to a few tables under
// the Sum optimizer, so that one lost or doubled minibatch shows in the exported weights. See
// README.md.

#include <muster/muster.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "examples/counter/contributions.h"

namespace counter {
namespace {

constexpr char kHelp[] =
    "Usage: counter_trainer [--slow-us MICROSECONDS]\n\n"
    "A worker of the counter job; start it with `muster run`. --slow-us makes every minibatch "
    "take\n"
    "that much longer, so that there is time to kill something.\n\n"
    "Example, in a job file: command: [./counter_trainer, --slow-us, \"20000\"]\n";

struct Tables {
  muster::Table ids;
  muster::Table buckets;
  muster::Table wide;
  muster::DenseTensor totals;
};

Tables Register(muster::Session& session) {
  return {
      session.SparseTable({.name = "ids", .dim = kIdsDim, .optimizer = muster::Sum{}}),
      session.SparseTable({.name = "buckets",
                           .dim = kBucketsDim,
                           .optimizer = muster::Sum{},
                           .initializer = muster::Constant{.value = kBucketsInitial}}),
      session.SparseTable({.name = "wide", .dim = kWideDim, .optimizer = muster::Sum{}}),
      session.DenseTable(
          {.name = "totals", .shape = {kTotalsRows, kTotalsColumns}, .optimizer = muster::Sum{}})};
}

/// The gradients of one minibatch.
struct Gradients {
  std::vector<uint64_t> ids_keys, buckets_keys, wide_keys;
  std::vector<float> ids, buckets, wide, totals;
};

Gradients GradientsOf(muster::Minibatch& batch) {
  Gradients result;
  result.totals.assign(kTotalsSize, 0);
  for (size_t i = 0; i < batch.records().size(); ++i) {
    const std::optional<uint64_t> id = ParseId(batch.records()[i]);
    if (!id.has_value()) {
      batch.Reject(i, "not a whole number from 0 to 1000000000");
      continue;
    }
    const Contribution added = ContributionOf(*id);
    result.ids_keys.push_back(*id);
    result.buckets_keys.push_back(added.bucket_key);
    result.wide_keys.push_back(added.wide_key);
    result.ids.insert(result.ids.end(), added.ids.begin(), added.ids.end());
    result.buckets.insert(result.buckets.end(), added.buckets.begin(), added.buckets.end());
    result.wide.insert(result.wide.end(), added.wide.begin(), added.wide.end());
    for (size_t j = 0; j < kTotalsSize; ++j) result.totals[j] += added.totals[j];
  }
  return result;
}

/// Rows of whole numbers only ever add up to whole numbers: anything else was torn or made up.
bool AllWhole(muster::Rows rows) {
  for (const float value : rows.values()) {
    if (value != std::nearbyint(value)) return false;
  }
  return true;
}

void Run(muster::Shard& shard, const Tables& tables, std::chrono::microseconds slow) {
  const auto prepare = [&tables](muster::Minibatch& batch) {
    Gradients gradients = GradientsOf(batch);
    batch.Need(tables.buckets, gradients.buckets_keys);
    batch.Need(tables.totals);
    batch.user_data() = std::move(gradients);
  };
  for (muster::Minibatch& batch : shard.Minibatches(prepare)) {
    const auto& gradients = std::any_cast<const Gradients&>(batch.user_data());
    if (!AllWhole(batch.Pull(tables.buckets, gradients.buckets_keys)) ||
        !AllWhole(batch.Pull(tables.totals))) {
      shard.Fail("a pulled row is not made of whole numbers");
      return;
    }
    if (slow.count() > 0) std::this_thread::sleep_for(slow);
    if (!batch.evaluate() && !gradients.ids_keys.empty()) {
      batch.Push(tables.ids, gradients.ids_keys, gradients.ids);
      batch.Push(tables.buckets, gradients.buckets_keys, gradients.buckets);
      batch.Push(tables.wide, gradients.wide_keys, gradients.wide);
      batch.Push(tables.totals, gradients.totals);
    }
    batch.Metric("records", 1, static_cast<double>(gradients.ids_keys.size()));
    batch.Commit();
  }
}

}  // namespace
}  // namespace counter

int main(int argc, char** argv) {
  int64_t slow_us = 0;
  if (argc == 3 && std::string_view(argv[1]) == "--slow-us") {
    const char* end = argv[2] + std::strlen(argv[2]);
    if (std::from_chars(argv[2], end, slow_us).ptr != end || slow_us < 0) argc = 2;
  }
  if (argc != 1 && argc != 3) {
    std::fputs(counter::kHelp, stderr);
    return 2;
  }
  auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
  const counter::Tables tables = counter::Register(session);
  while (auto shard = session.NextShard()) {
    counter::Run(*shard, tables, std::chrono::microseconds(slow_us));
  }
  return session.Finish();
}
