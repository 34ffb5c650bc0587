// Pulls and pushes of the partition engine beside what the machine itself can do: memcpy and a
// gather and a read-modify-write of rows of the same size, in the order of the same keys, in the
// same run. One thread. Medians of 5 runs after a warm-up run. The last figure of a line is the
// share of the bare gather or update.
//
//   ps_engine_bench [--smoke] [rows] [dim] [keys per call]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

  size_t calls() const { return std::max<size_t>(std::min(kRowsPerRun, 20 * rows) / keys, 1); }
};

/// Keys of one call, grouped by partition, unique: as a client sends them.
struct Call {
  std::vector<uint64_t> keys;
  std::vector<size_t> begin;  // by partition, and the end
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
    std::vector<std::vector<uint64_t>> by_partition(partitions);
    for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[rng.Below(i)]);
    for (const uint64_t key : keys) {
      by_partition[PartitionOf(TableId(1), key, partitions).value()].push_back(key);
    }
    for (const std::vector<uint64_t>& part : by_partition) {
      call.begin.push_back(call.keys.size());
      call.keys.insert(call.keys.end(), part.begin(), part.end());
    }
    call.begin.push_back(call.keys.size());
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
    TableSpec table;
    table.id = TableId(1);
    table.name = "bench";
    table.dim = load.dim;
    table.optimizer = optimizer;
    for (uint32_t p = 0; p < partition_count; ++p) {
      partitions_.push_back(std::make_unique<Partition>(PartitionId(p), 1));
      partitions_[p]->AddTable(table);
    }
    std::vector<std::vector<uint64_t>> fills(partition_count);
    for (uint64_t row = 0; row < load.rows; ++row) {
      const uint64_t key = Mix64(row);
      const uint32_t p = PartitionOf(TableId(1), key, partition_count).value();
      fills[p].push_back(key);
      if (fills[p].size() == kFillRows) Fill(p, &fills[p]);
    }
    for (uint32_t p = 0; p < partition_count; ++p) Fill(p, &fills[p]);
    values_.resize(load.keys * load.dim);
  }

  /// All parts of a call together, as a server does.
  void PullAll(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      groups_.clear();
      ForEachPart(call, [&](uint32_t p, std::span<const uint64_t> keys, size_t at) {
        groups_.push_back(
            {.table = partitions_[p]->FindTable(TableId(1)),
             .keys = keys,
             .values = std::span(values_).subspan(at * load_.dim, keys.size() * load_.dim)});
      });
      WorkLimit work = WorkLimit::None();
      if (Gather(groups_, 0, &work).group != groups_.size()) std::abort();
    }
  }
  void PullPartByPart(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      ForEachPart(call, [&](uint32_t p, std::span<const uint64_t> keys, size_t at) {
        const std::span<float> out =
            std::span(values_).subspan(at * load_.dim, keys.size() * load_.dim);
        if (!partitions_[p]->Pull(TableId(1), keys, out).ok()) std::abort();
      });
    }
  }
  /// Every call is a minibatch of a shard of 16.
  void PushAll(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      ++minibatch_;
      uint32_t next = 0;
      ahead_.Clear();
      ForEachPart(call, [&](uint32_t p, std::span<const uint64_t> keys, size_t) {
        for (; next < partitions_.size() && ahead_.wants_more(); ++next) {
          const size_t count = call.begin[next + 1] - call.begin[next];
          ahead_.Expect(partitions_[next]->FindTable(TableId(1)),
                        std::span(call.keys).subspan(call.begin[next], count));
        }
        ahead_.FindRows();
        Push(p, keys);
        ahead_.Pass(keys.size());
      });
    }
  }

 private:
  template <typename Visit>
  void ForEachPart(const Call& call, Visit&& visit) {
    for (uint32_t p = 0; p < partitions_.size(); ++p) {
      const size_t count = call.begin[p + 1] - call.begin[p];
      if (count != 0) visit(p, std::span(call.keys).subspan(call.begin[p], count), call.begin[p]);
    }
  }
  void Fill(uint32_t p, std::vector<uint64_t>* keys) {
    ++minibatch_;
    Push(p, *keys);
    keys->clear();
  }
  void Push(uint32_t p, std::span<const uint64_t> keys) {
    part_.shard = {DatasetId(0), EpochIndex(0), ShardIndex(minibatch_ / kMinibatches)};
    part_.minibatch = MinibatchIndex(static_cast<uint32_t>(minibatch_ % kMinibatches));
    part_.groups.assign(1,
                        {TableId(1), keys, std::span(gradients_).first(keys.size() * load_.dim)});
    const ApplyCode code = partitions_[p]->Apply(part_).code;
    if (code != ApplyCode::kApplied) std::abort();
  }

  static constexpr uint64_t kMinibatches = 16;
  const Load load_;
  const std::vector<float> gradients_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::vector<float> values_;
  std::vector<PullGroup> groups_;
  PushAhead ahead_;
  Part part_{.token = LeaseToken(MasterIncarnation(1), 1)};
  uint64_t minibatch_ = 0;
};

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

}  // namespace
}  // namespace muster::ps

int main(int argc, char** argv) {
  muster::ps::Load load;
  std::vector<char*> numbers;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--smoke") {
      load = {.rows = 20'000, .dim = 16, .keys = 1'000};
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
               "Usage: ps_engine_bench [--smoke] [rows] [dim] [keys a call, up to rows / 2]\n"
               "  --smoke  few rows: shows in a second that it works, its figures mean nothing\n");
    return 2;
  }
  using muster::AdagradSpec;
  using muster::AdamSpec;
  muster::ps::PrintMemcpy();
  // Parts of one row or two.
  muster::ps::Load small = load;
  small.keys = std::min<size_t>(load.keys, 100);
  for (const bool zipf : {true, false}) {
    for (const uint32_t partitions : {1u, 256u}) {
      muster::ps::Run(load, partitions, AdagradSpec{}, "Adagrad", zipf);
    }
    muster::ps::Run(small, 256, AdagradSpec{}, "Adagrad", zipf);
  }
  muster::ps::Run(load, 256, AdamSpec{}, "Adam", false);
  muster::ps::Run(load, 256, muster::SumSpec{}, "Sum", false);
  return 0;
}
