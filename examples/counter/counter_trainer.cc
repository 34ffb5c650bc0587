// A worker whose result is known beforehand: every record adds whole numbers to a few tables under
// the Sum optimizer, so that one lost or doubled minibatch shows in the exported weights. See
// README.md.

#include <muster/muster.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "examples/counter/contributions.h"

namespace counter {
namespace {

constexpr char kHelp[] =
    "Usage: counter_trainer [--slow-us MICROSECONDS] [--slow-while FILE] [--threads N]\n"
    "                       [--warm-start FOLDER]\n\n"
    "A worker of the counter job; start it with `muster run`.\n\n"
    "  --slow-us MICROSECONDS  every minibatch takes that much longer: time to kill something\n"
    "  --slow-while FILE       only while that file exists: remove it, and the job runs to its "
    "end\n"
    "  --threads N             threads that run shards of their own, 1 to 64; 1 unless said\n"
    "  --warm-start FOLDER     an export that the tables start from\n\n"
    "Example, in a job file: command: [./counter_trainer, --slow-us, \"20000\"]\n";

struct Options {
  std::chrono::microseconds slow{0};
  std::string slow_while;
  int64_t threads = 1;
  std::string warm_start;
};

/// A whole number from `low` to `high`; nothing when the text is not that.
std::optional<int64_t> ParseNumber(std::string_view text, int64_t low, int64_t high) {
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < low || number > high) return std::nullopt;
  return number;
}

std::optional<Options> ParseOptions(std::span<char*> arguments) {
  Options options;
  if (arguments.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    const std::string_view value = arguments[i + 1];
    if (name == "--warm-start") {
      options.warm_start = value;
      continue;
    }
    if (name == "--slow-while") {
      options.slow_while = value;
      continue;
    }
    const bool threads = name == "--threads";
    if (!threads && name != "--slow-us") return std::nullopt;
    const auto number = threads ? ParseNumber(value, 1, 64) : ParseNumber(value, 0, 1'000'000'000);
    if (!number.has_value()) return std::nullopt;
    if (threads) {
      options.threads = *number;
    } else {
      options.slow = std::chrono::microseconds(*number);
    }
  }
  return options;
}

/// What a minibatch takes longer for the sake of who wants to kill something meanwhile.
void BeSlow(const Options& options) {
  if (options.slow.count() == 0) return;
  std::error_code ignored;
  if (!options.slow_while.empty() && !std::filesystem::exists(options.slow_while, ignored)) return;
  std::this_thread::sleep_for(options.slow);
}

struct Tables {
  muster::Table ids;
  muster::Table buckets;
  muster::Table wide;
  muster::DenseTensor totals;
};

Tables Register(muster::Session& session, const std::string& warm_start) {
  return {
      session.SparseTable(
          {.name = "ids", .dim = kIdsDim, .optimizer = muster::Sum{}, .warm_start = warm_start}),
      session.SparseTable({.name = "buckets",
                           .dim = kBucketsDim,
                           .optimizer = muster::Sum{},
                           .initializer = muster::Constant{.value = kBucketsInitial},
                           .warm_start = warm_start}),
      session.SparseTable(
          {.name = "wide", .dim = kWideDim, .optimizer = muster::Sum{}, .warm_start = warm_start}),
      session.DenseTable({.name = "totals",
                          .shape = {kTotalsRows, kTotalsColumns},
                          .optimizer = muster::Sum{},
                          .warm_start = warm_start})};
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

/// What is known of the records beforehand: their mean number, of whole numbers, hence exact; and
/// of an evaluate dataset the mean of their rows of `ids`, 0 when no training record has their
/// number.
void ReportMetrics(muster::Minibatch& batch, const Tables& tables, const Gradients& gradients) {
  for (const uint64_t id : gradients.ids_keys) batch.Metric("id", static_cast<double>(id), 1);
  if (!batch.evaluate()) return;
  const muster::Rows rows = batch.Pull(tables.ids, gradients.ids_keys);
  for (const float value : rows.values()) batch.Metric("ids_row", value, 1);
}

void Run(muster::Shard& shard, const Tables& tables, const Options& options) {
  const auto prepare = [&tables](muster::Minibatch& batch) {
    Gradients gradients = GradientsOf(batch);
    if (batch.evaluate()) batch.Need(tables.ids, gradients.ids_keys);
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
    BeSlow(options);
    if (!batch.evaluate() && !gradients.ids_keys.empty()) {
      batch.Push(tables.ids, gradients.ids_keys, gradients.ids);
      batch.Push(tables.buckets, gradients.buckets_keys, gradients.buckets);
      batch.Push(tables.wide, gradients.wide_keys, gradients.wide);
      batch.Push(tables.totals, gradients.totals);
    }
    ReportMetrics(batch, tables, gradients);
    batch.Commit();
  }
}

}  // namespace
}  // namespace counter

int main(int argc, char** argv) {
  const auto options =
      counter::ParseOptions(std::span(argv, static_cast<size_t>(argc)).subspan(argc > 0 ? 1 : 0));
  if (!options.has_value()) {
    std::fputs(counter::kHelp, stderr);
    return 2;
  }
  auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
  const counter::Tables tables = counter::Register(session, options->warm_start);
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < options->threads; ++i) {
      threads.emplace_back([&] {
        while (auto shard = session.NextShard()) counter::Run(*shard, tables, *options);
      });
    }
  }
  return session.Finish();
}
