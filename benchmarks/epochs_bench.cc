// What an epoch costs the master's core: memory that is still in use, and CPU time, after more and
// more epochs of one shard. Journal and network are left out.
//   epochs_bench [--smoke] [--evaluate | --keep] [epochs] [epochs per snapshot]
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "benchmarks/thread_cpu.h"
#include "benchmarks/whole_number.h"
#include "master/core/master_core.h"

namespace muster {
namespace {

constexpr uint64_t kMostEpochs = 1'000'000;
constexpr uint32_t kPartitions = 64;
constexpr uint64_t kEpochsPerTick = 25;

struct Sizes {
  uint64_t epochs = 100'000;
  /// What was DONE becomes COMMITTED after so many. A job that keeps weights waits for it after
  /// each.
  uint64_t epochs_per_snapshot = 500;
  /// Each epoch is judged, by a shard whose scores fill a histogram.
  bool evaluates = false;
  bool keeps = false;
};

DatasetPlan Plan(const std::string& name, DatasetMode mode, uint64_t epochs) {
  DatasetPlan plan{name, mode, static_cast<uint32_t>(epochs), 1, 1'000, 1'000, nullptr};
  plan.size_of = [](EpochIndex, ShardIndex) { return ShardSize{1'000, 1}; };
  return plan;
}

CoreOptions OptionsFor(const Sizes& sizes) {
  CoreOptions options;
  options.datasets.push_back(Plan("train", DatasetMode::kTrain, sizes.epochs + 1));
  if (sizes.evaluates) options.datasets.push_back(Plan("test", DatasetMode::kEvaluate, 1));
  if (sizes.keeps) options.epoch_ends.keep_best = {DatasetId(1), "auc", Better::kHigher};
  options.partitions = kPartitions;
  options.run_id = "bench";
  options.snapshot_interval = std::chrono::seconds(1);
  return options;
}

/// One worker and one server, with a clock by hand.
class Job {
 public:
  explicit Job(const Sizes& sizes)
      : sizes_(sizes), core_(OptionsFor(sizes), {}, {now_, WallTime(1)}) {
    for (int i = 0; i < 1'000; ++i) {
      AddScore(&scores_, static_cast<float>(i) / 1'000, i % 3 == 0);
    }
    worker_.worker = "worker-0";
    worker_.incarnation = 1;
    const absl::Status begun = core_.HelloWorker({"worker-0", 1}, StartNumber(), At());
    MUSTER_CHECK_MSG(begun.ok(), begun.ToString());
    server_.incarnation =
        core_.RegisterServer({"ps-0", 1, {{"unix:/x"}}}, At()).value().incarnation;
  }

  /// Trains until so many epochs are done, and COMMITTED.
  void RunUntil(uint64_t epochs) {
    for (; epochs_ < epochs; ++epochs_) {
      TrainOne();
      if (sizes_.evaluates) TrainOne();
      if (epochs_ % kEpochsPerTick == 0) Tick();
      if (sizes_.keeps || epochs_ % sizes_.epochs_per_snapshot == 0) Snapshot();
    }
    Snapshot();
    MUSTER_CHECK(core_.ledger().queue().done().empty());
  }
  /// Epochs and passes that are COMMITTED.
  uint64_t committed() const { return core_.ledger().queue().committed_count(); }

 private:
  StepTime At() const { return {now_, WallTime(std::chrono::microseconds(1))}; }
  void TrainOne() {
    worker_.want = 1;
    ++worker_.sequence;
    const WorkerExchangeReply reply = core_.ExchangeWorker(worker_, At()).value();
    MUSTER_CHECK(reply.grants.size() == 1);
    const ShardGrant& grant = reply.grants[0];
    worker_.newest_grant = grant.token;
    worker_.want = 0;
    worker_.done = {{grant.shard, grant.token, grant.restore_epoch, {}, {}}};
    ShardMetrics& metrics = worker_.done[0].metrics;
    metrics.records = 1'000;
    metrics.means["loss"] = {1, 1'000};
    if (grant.shard.dataset == DatasetId(1)) metrics.aucs["auc"] = scores_;
    ++worker_.sequence;
    MUSTER_CHECK(core_.ExchangeWorker(worker_, At()).value().verdicts.size() == 1);
    worker_.done.clear();
    core_.TakeMutations();
  }
  void Tick() {
    now_ += std::chrono::milliseconds(50);
    core_.Tick(At());
    core_.TakeMutations();
  }
  /// Everything that is DONE becomes COMMITTED.
  void Snapshot() {
    const Ledger& ledger = core_.ledger();
    for (int turns = 0; ledger.commit_seq() < ledger.done_seq(); ++turns) {
      MUSTER_CHECK(turns < 10);
      now_ += std::chrono::seconds(1);
      core_.Tick(At());
      Report({});
      Report(Report({}).snapshots);
    }
  }
  ServerExchangeReply Report(const std::vector<SnapshotCommand>& written) {
    ++server_.sequence;
    server_.owned.clear();
    for (uint32_t p = 0; p < kPartitions; ++p) {
      const PartitionId partition(p);
      server_.owned.push_back({partition, core_.partitions().entry(partition).epoch,
                               core_.partitions().manifest(partition).number});
    }
    server_.snapshots.clear();
    for (const SnapshotCommand& command : written) {
      server_.snapshots.push_back(
          {command.partition, command.epoch, {command.number, command.cut, {}}});
    }
    ServerExchangeReply reply = core_.ExchangeServer(server_, At());
    core_.TakeMutations();
    return reply;
  }

  const Sizes sizes_;
  TimePoint now_{std::chrono::seconds(100)};
  MasterCore core_;
  ScoreHistogram scores_;
  WorkerExchangeRequest worker_;
  ServerExchangeRequest server_;
  uint64_t epochs_ = 0;
};

constexpr char kUsage[] =
    "Usage: epochs_bench [--smoke] [--evaluate | --keep] [epochs] [epochs per snapshot]\n"
    "  --evaluate  each epoch is judged by a shard with an AUC\n"
    "  --keep      the same, and the weights of the best epoch are kept\n"
    "  --smoke     few epochs: shows in a second that it works, its figures mean nothing\n";

std::optional<Sizes> Parse(std::span<char*> arguments) {
  Sizes sizes;
  int numbers = 0;
  for (const std::string_view argument : arguments) {
    if (argument == "--smoke") {
      sizes.epochs = 2'000;
    } else if (argument == "--evaluate" || argument == "--keep") {
      sizes.evaluates = true;
      sizes.keeps = argument == "--keep";
    } else if (const auto number = WholeNumber(argument, kMostEpochs);
               number && *number > 0 && numbers < 2) {
      (numbers++ == 0 ? sizes.epochs : sizes.epochs_per_snapshot) = *number;
    } else {
      return std::nullopt;
    }
  }
  return sizes;
}

int Main(std::span<char*> arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::optional<Sizes> sizes = Parse(arguments);
  if (!sizes) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  Job job(*sizes);
  double began = ThreadCpuSeconds();
  uint64_t before = 0;
  for (uint64_t epochs = 1'000; before < sizes->epochs; epochs *= 10) {
    for (const uint64_t at : {epochs, 3 * epochs}) {
      const uint64_t until = std::min(at, sizes->epochs);
      if (until <= before) continue;
      job.RunUntil(until);
      const double seconds = ThreadCpuSeconds() - began;
      fmt::print("{:>8} epochs, {:>8} COMMITTED: {:6.2f} MB in use, {:.1f} us of CPU time each\n",
                 until, job.committed(), static_cast<double>(mallinfo2().uordblks) / 1e6,
                 1e6 * seconds / static_cast<double>(until - before));
      before = until;
      began = ThreadCpuSeconds();
    }
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(std::span(argv, static_cast<size_t>(argc)).subspan(1));
}
