// A worker that writes down when things happened, for benchmarks/recovery.py: one line per event in
// FOLDER/<node>-<pid>.log,
// "<CLOCK_MONOTONIC ns> <event> <shard>". All processes of a machine share that clock.
//   shard   NextShard returned it
//   pull    a pull of keys in every partition was answered; the line also has the time at which it
//           began
//   ok      a minibatch of it is acknowledged by every partition
// With --hold-after it writes nothing: growth.py looks at the job at a number of shards.
#include <muster/muster.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace {

// Enough keys that none of up to 256 partitions is left out (each is, with probability 1e-14).
constexpr uint64_t kProbeKeys = 8192;

long long Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Options {
  const char* folder = nullptr;  // null: push nothing, write nothing
  std::chrono::milliseconds minibatch{0};
  /// Shards, after which it stands still in the next one, until it is ended.
  unsigned long long hold_after = std::numeric_limits<unsigned long long>::max();
  /// A row and a metric in each minibatch, though nothing is written.
  bool pushes = false;
};

class EventLog {
 public:
  explicit EventLog(const char* folder) {
    if (folder == nullptr) return;
    const std::string node = muster::SessionOptions::FromEnvironment().worker_name;
    const std::string path =
        std::string(folder) + "/" + node + "-" + std::to_string(::getpid()) + ".log";
    file_ = std::fopen(path.c_str(), "w");
  }
  void Add(const char* event, const std::string& shard, long long began) {
    if (file_ == nullptr) return;
    std::fprintf(file_, "%lld %s %s %lld\n", Now(), event, shard.c_str(), began);
    std::fflush(file_);
  }

 private:
  std::FILE* file_ = nullptr;
};

void Run(muster::Shard& shard, const muster::Table& table, const Options& options, EventLog* log) {
  static const std::vector<uint64_t> keys = [] {
    std::vector<uint64_t> all(kProbeKeys);
    for (uint64_t i = 0; i < kProbeKeys; ++i) all[i] = i;
    return all;
  }();
  const std::vector<float> ones(keys.size(), 1.0f);
  bool first = true;
  for (muster::Minibatch& batch : shard.Minibatches()) {
    if (options.folder == nullptr) {
      if (options.pushes) {
        batch.Push(table, {keys.data(), 1}, {ones.data(), 1});
        batch.Metric("loss", 1.0, batch.records().size());
      }
      batch.Commit();
      continue;
    }
    const long long began = Now();
    batch.Pull(table, keys);
    log->Add("pull", shard.id(), began);
    if (options.minibatch.count() > 0) muster::SleepFor(options.minibatch);
    batch.Push(table, keys, ones);
    batch.Commit();
    // The job allows one unacknowledged minibatch: this Commit returned, so the one before is
    // acknowledged.
    if (!first) log->Add("ok", shard.id(), began);
    first = false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc > 1 && std::string_view(argv[1]) == "--help") {
    std::puts(
        "Usage: recovery_probe [FOLDER [MINIBATCH_MS]]\n"
        "       recovery_probe --hold-after SHARDS [--push]\n\n"
        "Started by benchmarks/recovery.py and growth.py.");
    return 0;
  }
  const bool holds = argc > 2 && std::string_view(argv[1]) == "--hold-after";
  options.pushes = holds && argc > 3 && std::string_view(argv[3]) == "--push";
  if (holds) options.hold_after = std::strtoull(argv[2], nullptr, 10);
  if (argc > 1 && !holds) options.folder = argv[1];
  if (argc > 2 && !holds) options.minibatch = std::chrono::milliseconds(std::atoi(argv[2]));
  auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
  const muster::Table table =
      session.SparseTable({.name = "probe", .dim = 1, .optimizer = muster::Sum{}});
  EventLog log(options.folder);
  unsigned long long shards = 0;
  while (auto shard = session.NextShard()) {
    log.Add("shard", shard->id(), Now());
    while (shards == options.hold_after) muster::SleepFor(std::chrono::milliseconds(100));
    ++shards;
    Run(*shard, table, options, &log);
  }
  return session.Finish();
}
