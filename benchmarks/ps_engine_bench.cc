// Pulls and pushes of the partition engine beside what the machine itself can do: memcpy and a
// gather and a read-modify-write of rows of the same size, in the order of the same keys, in the
// same run. One thread. Medians of 5 runs after a warm-up run. The last figure of a line is the
// share of the bare gather or update. At the end: what a part and a group cost besides their rows,
// the same calls with fewer of them beside each other.
//
//   ps_engine_bench [--smoke] [--fixed] [rows] [dim] [keys per call]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/random.h"
#include "benchmarks/thread_cpu.h"
#include "ps/engine/optimizer.h"
#include "ps/engine/partition.h"
#include "ps/engine/push_ahead.h"
#include "ps/engine/row_gather.h"
#include "sharding/partition_of.h"

namespace muster::ps {
namespace {

constexpr int kRuns = 5;
/// Rows of one run, so that small calls do not find all their rows in the cache.
constexpr size_t kRowsPerRun = 500'000;
/// Of a part that fills a partition before the runs.
constexpr size_t kFillRows = 1'000;

struct Load {
  uint64_t rows = 1'000'000;
  uint32_t dim = 64;
  size_t keys = 10'000;
  uint64_t tables = 1;  // key k is a key of table k mod tables

  size_t calls() const { return std::max<size_t>(std::min(kRowsPerRun, 20 * rows) / keys, 1); }
};

/// Rows of one table in one partition.
struct CallGroup {
  uint32_t partition = 0;
  TableId table;
  size_t begin = 0, count = 0;  // in the call's keys
};
/// Keys of one call, grouped by partition and then by table, unique: as a client sends them.
struct Call {
  std::vector<uint64_t> keys;
  std::vector<CallGroup> groups;
  size_t parts = 0;
};

double Seconds(const std::function<void()>& work) {
  const double start = ThreadCpuSeconds();
  work();
  return ThreadCpuSeconds() - start;
}

/// Runs each of `works` in turn, kRuns times after a round that does not count, so that other load
/// on the machine affects all of them alike; returns the median seconds of each.
std::vector<double> Medians(const std::vector<std::function<void()>>& works) {
  std::vector<std::vector<double>> seconds(works.size());
  for (int run = 0; run <= kRuns; ++run) {
    for (size_t i = 0; i < works.size(); ++i) {
      const double taken = Seconds(works[i]);
      if (run > 0) seconds[i].push_back(taken);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& all : seconds) {
    std::ranges::nth_element(all, all.begin() + kRuns / 2);
    medians.push_back(all[kRuns / 2]);
  }
  return medians;
}

/// Zipf with exponent 1 by inversion of the continuous distribution; uniform when `zipf` is false.
uint64_t DrawKey(Rng* rng, uint64_t rows, bool zipf) {
  if (!zipf) return rng->Below(rows);
  return static_cast<uint64_t>(std::exp(rng->Uniform() * std::log(static_cast<double>(rows)))) - 1;
}

TableId TableOf(const Load& load, uint64_t key) {
  return TableId(static_cast<uint32_t>(key % load.tables) + 1);
}

std::vector<Call> MakeCalls(const Load& load, uint32_t partitions, bool zipf) {
  Rng rng(1);
  std::vector<Call> calls(load.calls());
  for (Call& call : calls) {
    std::vector<uint64_t> keys;
    while (keys.size() < load.keys) {
      while (keys.size() < load.keys) {
        keys.push_back(Mix64(DrawKey(&rng, load.rows, zipf) % load.rows));
      }
      std::ranges::sort(keys);
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
    std::map<std::pair<uint32_t, TableId>, std::vector<uint64_t>> groups;
    for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[rng.Below(i)]);
    for (const uint64_t key : keys) {
      const TableId table = TableOf(load, key);
      groups[{PartitionOf(table, key, partitions).value(), table}].push_back(key);
    }
    for (const auto& [place, group] : groups) {
      const auto [partition, table] = place;
      if (call.groups.empty() || call.groups.back().partition != partition) ++call.parts;
      call.groups.push_back({partition, table, call.keys.size(), group.size()});
      call.keys.insert(call.keys.end(), group.begin(), group.end());
    }
  }
  return calls;
}

/// What the machine does with rows of the same size in one array, in the order of the same keys
/// and without looking them up: the limits.
class Machine {
 public:
  Machine(const Load& load, uint32_t floats_per_row, const std::vector<Call>& calls)
      : load_(load),
        floats_per_row_(floats_per_row),
        rows_(load.rows * floats_per_row, 1),
        out_(load.keys * load.dim),
        row_(floats_per_row, 2) {
    absl::flat_hash_map<uint64_t, uint32_t> row_of;
    for (uint64_t row = 0; row < load.rows; ++row) row_of[Mix64(row)] = static_cast<uint32_t>(row);
    for (const Call& call : calls) {
      for (const uint64_t key : call.keys) order_.push_back(row_of.at(key));
    }
  }
  /// Copies the values of random rows out.
  void Gather() {
    ForEachRow(load_.dim, [&](const float* row, size_t i) {
      std::memcpy(&out_[i % load_.keys * load_.dim], row, load_.dim * sizeof(float));
    });
  }
  /// Writes random rows whole: the memory traffic of a push and none of its work.
  void Update() {
    ForEachRow(floats_per_row_, [&](float* row, size_t) {
      std::memcpy(row, row_.data(), floats_per_row_ * sizeof(float));
    });
  }

 private:
  template <typename Visit>
  void ForEachRow(uint32_t floats, Visit&& visit) {
    constexpr size_t kAhead = 16;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (i + kAhead < order_.size()) {
        const float* ahead = &rows_[uint64_t{order_[i + kAhead]} * floats_per_row_];
        for (uint32_t at = 0; at < floats; at += 16) __builtin_prefetch(ahead + at);
      }
      visit(&rows_[uint64_t{order_[i]} * floats_per_row_], i);
    }
  }

  const Load load_;
  const uint32_t floats_per_row_;
  std::vector<float> rows_;
  std::vector<float> out_;
  std::vector<float> row_;
  std::vector<uint32_t> order_;
};

void PrintMemcpy() {
  std::vector<char> from(256 << 20, 1), to(256 << 20, 2);
  const double seconds = Medians({[&] { std::memcpy(to.data(), from.data(), from.size()); }})[0];
  fmt::print("machine: memcpy {:.1f} GB/s copied\n",
             static_cast<double>(from.size()) / seconds / 1e9);
}

void Report(const std::string& what, double rows, double bytes_per_row, double limit) {
  fmt::print("  {:<20} {:7.2f} Mrows/s {:6.2f} GB/s {:4.0f} %\n", what, rows / 1e6,
             rows * bytes_per_row / 1e9, 100 * rows / limit);
}

/// Partitions with the rows of a load.
class Bench {
 public:
  Bench(const Load& load, uint32_t partition_count, const OptimizerSpec& optimizer)
      : load_(load), gradients_(std::max(load.keys, kFillRows) * load.dim, 0.01f) {
    for (uint32_t p = 0; p < partition_count; ++p) {
      partitions_.push_back(std::make_unique<Partition>(PartitionId(p), 1));
      for (uint64_t t = 0; t < load.tables; ++t) {
        TableSpec table;
        table.id = TableOf(load, t);
        table.name = "bench";
        table.dim = load.dim;
        table.optimizer = optimizer;
        partitions_[p]->AddTable(table);
      }
    }
    std::map<std::pair<uint32_t, TableId>, std::vector<uint64_t>> fills;
    for (uint64_t row = 0; row < load.rows; ++row) {
      const uint64_t key = Mix64(row);
      const TableId table = TableOf(load, key);
      const uint32_t p = PartitionOf(table, key, partition_count).value();
      std::vector<uint64_t>& keys = fills[{p, table}];
      keys.push_back(key);
      if (keys.size() == kFillRows) Fill(p, table, &keys);
    }
    for (auto& [place, keys] : fills) Fill(place.first, place.second, &keys);
    values_.resize(load.keys * load.dim);
  }

  /// All parts of a call together, as a server does.
  void PullAll(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      groups_.clear();
      for (const CallGroup& group : call.groups) {
        groups_.push_back({.table = partitions_[group.partition]->FindTable(group.table),
                           .keys = KeysOf(call, group),
                           .values = ValuesOf(group)});
      }
      WorkLimit work = WorkLimit::None();
      if (Gather(groups_, 0, &work).group != groups_.size()) std::abort();
    }
  }
  void PullPartByPart(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      for (const CallGroup& group : call.groups) {
        const Partition& partition = *partitions_[group.partition];
        if (!partition.Pull(group.table, KeysOf(call, group), ValuesOf(group)).ok()) std::abort();
      }
    }
  }
  /// Every call is a minibatch of a shard of 16.
  void PushAll(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      if (++minibatch_ % kForgetMinibatches == 0) Forget();
      ahead_.Begin(call);
      for (size_t begin = 0, end = 0; begin < call.groups.size(); begin = end) {
        part_.groups.clear();
        const uint32_t partition = call.groups[begin].partition;
        for (; end < call.groups.size() && call.groups[end].partition == partition; ++end) {
          AddGroup(call.groups[end].table, KeysOf(call, call.groups[end]));
        }
        Push(partition, &ahead_);
      }
    }
  }

 private:
  static std::span<const uint64_t> KeysOf(const Call& call, const CallGroup& group) {
    return std::span(call.keys).subspan(group.begin, group.count);
  }
  std::span<float> ValuesOf(const CallGroup& group) {
    return std::span(values_).subspan(group.begin * load_.dim, group.count * load_.dim);
  }
  /// As after accepted snapshots, so that windows keep their size.
  void Forget() {
    ForgetState state;
    state.shards[{DatasetId(0), EpochIndex(0)}].Add(0, minibatch_ / kMinibatches);
    for (const auto& partition : partitions_) partition->Forget(state);
  }
  void Fill(uint32_t p, TableId table, std::vector<uint64_t>* keys) {
    if (keys->empty()) return;
    ++minibatch_;
    part_.groups.clear();
    AddGroup(table, *keys);
    Push(p, nullptr);
    keys->clear();
  }
  void AddGroup(TableId table, std::span<const uint64_t> keys) {
    part_.groups.push_back({table, keys, std::span(gradients_).first(keys.size() * load_.dim)});
  }
  void Push(uint32_t p, PushAhead* ahead) {
    part_.shard = {DatasetId(0), EpochIndex(0), ShardIndex(minibatch_ / kMinibatches)};
    part_.minibatch = MinibatchIndex(static_cast<uint32_t>(minibatch_ % kMinibatches));
    const ApplyCode code = partitions_[p]->Apply(part_, ahead).code;
    if (code != ApplyCode::kApplied) std::abort();
  }

  /// Announces the groups of a call, as a server does.
  class Ahead final : public PushAhead {
   public:
    explicit Ahead(Bench* bench) : bench_(bench) {}
    void Begin(const Call& call) {
      Clear();
      call_ = &call;
      next_ = 0;
      Refill();
    }
    void Refill() override {
      for (; next_ < call_->groups.size() && wants_more(); ++next_) {
        const CallGroup& group = call_->groups[next_];
        Expect(bench_->partitions_[group.partition]->FindTable(group.table), KeysOf(*call_, group));
      }
      FindRows();
    }

   private:
    Bench* const bench_;
    const Call* call_ = nullptr;
    size_t next_ = 0;
  };

  static constexpr uint64_t kMinibatches = 16;
  static constexpr uint64_t kForgetMinibatches = 256;
  const Load load_;
  const std::vector<float> gradients_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::vector<float> values_;
  std::vector<PullGroup> groups_;
  Ahead ahead_{this};
  Part part_{.token = LeaseToken(MasterIncarnation(1), 1)};
  uint64_t minibatch_ = 0;
};

/// Prints what a part or a group more costs: the same keys in one and in the other.
void RunFixed(const Load& few, uint32_t few_partitions, const Load& many,
              uint32_t many_partitions) {
  const OptimizerSpec optimizer = AdagradSpec{};
  Bench of_few(few, few_partitions, optimizer), of_many(many, many_partitions, optimizer);
  const std::vector<Call> few_calls = MakeCalls(few, few_partitions, true);
  const std::vector<Call> many_calls = MakeCalls(many, many_partitions, true);
  const std::vector<double> seconds =
      Medians({[&] { of_few.PullAll(few_calls); }, [&] { of_many.PullAll(many_calls); },
               [&] { of_few.PushAll(few_calls); }, [&] { of_many.PushAll(many_calls); }});
  size_t parts = 0, groups = 0;
  for (const Call& call : many_calls) parts += call.parts, groups += call.groups.size();
  for (const Call& call : few_calls) parts -= call.parts, groups -= call.groups.size();
  const bool of_parts = many.tables == few.tables;
  const auto each = 1e9 / static_cast<double>(of_parts ? parts : groups);
  fmt::print("{} keys a call, {} tables in {} partitions, beside {} in {}: one {} more costs\n",
             many.keys, many.tables, many_partitions, few.tables, few_partitions,
             of_parts ? "part" : "group");
  fmt::print("  pull {:6.1f} ns, {:.2f} of the rate\n", (seconds[1] - seconds[0]) * each,
             seconds[0] / seconds[1]);
  fmt::print("  push {:6.1f} ns, {:.2f} of the rate\n", (seconds[3] - seconds[2]) * each,
             seconds[2] / seconds[3]);
}

void Run(const Load& load, uint32_t partition_count, const OptimizerSpec& optimizer,
         const std::string& name, bool zipf) {
  Bench bench(load, partition_count, optimizer);
  const std::vector<Call> calls = MakeCalls(load, partition_count, zipf);
  const uint32_t floats = load.dim + SlotFloats(optimizer, load.dim);
  Machine machine(load, floats, calls);
  const std::vector<double> seconds =
      Medians({[&] { machine.Gather(); }, [&] { bench.PullAll(calls); }, [&] { machine.Update(); },
               [&] { bench.PushAll(calls); }, [&] { bench.PullPartByPart(calls); }});
  const double rows = static_cast<double>(load.calls() * load.keys);
  fmt::print("{} rows x {} float32, {}, {} keys a call, {}, {} partitions\n", load.rows, load.dim,
             name, load.keys, zipf ? "zipf" : "uniform", partition_count);
  const double value_bytes = load.dim * sizeof(float), row_bytes = floats * sizeof(float);
  Report("machine: gather", rows / seconds[0], value_bytes, rows / seconds[0]);
  Report("pull", rows / seconds[1], value_bytes, rows / seconds[0]);
  Report("pull part by part", rows / seconds[4], value_bytes, rows / seconds[0]);
  Report("machine: update", rows / seconds[2], row_bytes, rows / seconds[2]);
  Report("push", rows / seconds[3], row_bytes, rows / seconds[2]);
}

/// The calls with parts of one row or two.
Load SmallCalls(Load load) {
  load.keys = std::min<size_t>(load.keys, 100);
  return load;
}

void RunRates(const Load& load) {
  PrintMemcpy();
  for (const bool zipf : {true, false}) {
    for (const uint32_t partitions : {1u, 256u}) {
      Run(load, partitions, AdagradSpec{}, "Adagrad", zipf);
    }
    Run(SmallCalls(load), 256, AdagradSpec{}, "Adagrad", zipf);
  }
  Run(load, 256, AdamSpec{}, "Adam", false);
  Run(load, 256, SumSpec{}, "Sum", false);
}

void RunAllFixed(Load load) {
  load.dim = std::min<uint32_t>(load.dim, 16);  // of short rows, fixed costs are a larger share
  RunFixed(SmallCalls(load), 16, SmallCalls(load), 256);
  RunFixed(load, 16, load, 256);
  for (const uint64_t tables : {26u, 200u}) {
    Load many = load;
    many.tables = tables;
    RunFixed(load, 256, many, 256);
  }
}

}  // namespace
}  // namespace muster::ps

int main(int argc, char** argv) {
  muster::ps::Load load;
  bool fixed_alone = false;
  std::vector<char*> numbers;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--smoke") {
      load = {.rows = 20'000, .dim = 16, .keys = 1'000};
    } else if (std::string_view(argv[i]) == "--fixed") {
      fixed_alone = true;
    } else {
      numbers.push_back(argv[i]);
    }
  }
  if (!numbers.empty()) load.rows = std::strtoull(numbers[0], nullptr, 10);
  if (numbers.size() > 1) {
    load.dim = static_cast<uint32_t>(std::strtoul(numbers[1], nullptr, 10));
  }
  if (numbers.size() > 2) load.keys = std::strtoull(numbers[2], nullptr, 10);
  if (numbers.size() > 3 || load.rows == 0 || load.dim == 0 || load.keys == 0 ||
      load.keys * 2 > load.rows) {
    fmt::print(stderr,
               "Usage: ps_engine_bench [--smoke] [--fixed] [rows] [dim] [keys a call, up to rows / "
               "2]\n"
               "  --smoke  few rows: shows in a second that it works, its figures mean nothing\n"
               "  --fixed  only what parts and groups cost besides their rows\n");
    return 2;
  }
  if (!fixed_alone) muster::ps::RunRates(load);
  muster::ps::RunAllFixed(load);
  return 0;
}
