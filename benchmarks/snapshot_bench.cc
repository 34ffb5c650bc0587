// What it costs to write a partition's snapshot: the CPU time of the thread that writes, kernel
// included, beside a memcpy and the XXH3 of the same rows in the same run. One thread; medians of 5
// runs after a warm-up run. The rows are drawn at random, as those of a trained table look: they
// hardly compress.
//
//   snapshot_bench [--smoke] [--directory DIR] [rows] [floats per row]
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "benchmarks/thread_cpu.h"
#include "ps/snapshot/snapshot.h"

namespace muster::ps {
namespace {

constexpr int kRuns = 5;

struct Load {
  uint64_t rows = 4'000;    // of one of 256 partitions of a table of a million
  uint32_t floats = 128;    // 64 values and Adagrad's sums
  uint64_t snapshots = 50;  // of one run
  std::string directory = TemporaryFolder() + "/muster-snapshot-bench";

  double bytes() const { return static_cast<double>(rows) * floats * sizeof(float); }
};

PartitionImage MakeImage(const Load& load) {
  Rng rng(1);
  PartitionImage image;
  image.kind = SnapshotKind::kBase;
  TableSpec table;
  table.id = TableId(1);
  table.name = "embedding";
  table.dim = load.floats / 2;
  table.optimizer = AdagradSpec{};
  image.tables = {table};
  RowImage& rows = image.rows.emplace_back();
  rows.table = table.id;
  rows.floats_per_row = load.floats;
  for (uint64_t i = 0; i < load.rows; ++i) {
    rows.keys.push_back(Mix64(i));
    for (uint32_t f = 0; f < load.floats; ++f) {
      rows.rows.push_back(static_cast<float>(rng.Uniform() - (f < load.floats / 2 ? 0.5 : 0)));
    }
  }
  return image;
}

/// The median CPU seconds of the runs after the first; what happens between them does not count.
double Median(const std::function<void()>& between, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    between();
    const double start = ThreadCpuSeconds();
    work();
    if (run > 0) seconds.push_back(ThreadCpuSeconds() - start);
  }
  std::ranges::nth_element(seconds, seconds.begin() + kRuns / 2);
  return seconds[kRuns / 2];
}

int Run(const Load& load) {
  const PartitionImage image = MakeImage(load);
  const std::unique_ptr<ObjectStore> store = OpenDirectoryStore(load.directory);
  const std::vector<float>& rows = image.rows[0].rows;
  uint64_t written = 0, number = 0;
  const auto remove = [&] { std::filesystem::remove_all(load.directory); };
  const double write = Median(remove, [&] {
    for (uint64_t i = 0; i < load.snapshots; ++i) {
      const auto file = WriteSnapshot(store.get(), PartitionId(0), OwnerEpoch(1),
                                      SnapshotNumber(MasterIncarnation(1), ++number), image);
      if (!file.ok()) {
        fmt::print(stderr, "{}\n", file.status().ToString());
        std::exit(1);
      }
      written = file->bytes;
    }
  });
  remove();
  std::vector<float> copy(rows.size());
  uint64_t hash = 0;
  const double copied =
      Median([] {},
             [&] {
               for (uint64_t i = 0; i < load.snapshots; ++i) {
                 std::memcpy(copy.data(), rows.data(), rows.size() * sizeof(float));
               }
             });
  const double hashed = Median([] {},
                               [&] {
                                 for (uint64_t i = 0; i < load.snapshots; ++i) {
                                   hash ^=
                                       XXH3_64bits(copy.data(), copy.size() * sizeof(float)) + i;
                                 }
                               });
  const auto line = [&](std::string_view what, double seconds) {
    const double one = seconds / static_cast<double>(load.snapshots);
    fmt::print("{:<20} {:>8.2f} ms  {:>7.1f} ns a row  {:>6.2f} GB/s of CPU time\n", what,
               one * 1e3, one * 1e9 / static_cast<double>(load.rows), load.bytes() / one / 1e9);
  };
  fmt::print("a partition of {} rows of {} float32: {:.1f} MB, {:.1f} MB in its file ({:x})\n",
             load.rows, load.floats, load.bytes() / 1e6, static_cast<double>(written) / 1e6,
             hash & 0xf);
  line("snapshot written", write);
  line("memcpy of the rows", copied);
  line("XXH3 of the rows", hashed);
  return 0;
}

int Main(int argc, char** argv) {
  Load load;
  int values = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--smoke") {
      load.rows = 100;
      load.snapshots = 2;
    } else if (arg == "--directory" && i + 1 < argc) {
      load.directory = std::string(argv[++i]) + "/muster-snapshot-bench";
    } else if (values++ == 0) {
      load.rows = std::strtoull(argv[i], nullptr, 10);
    } else {
      load.floats = static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10));
    }
  }
  if (load.rows == 0 || load.floats < 2) {
    fmt::print(stderr, "usage: snapshot_bench [--smoke] [--directory DIR] [rows] [floats]\n");
    return 2;
  }
  return Run(load);
}

}  // namespace
}  // namespace muster::ps

int main(int argc, char** argv) {
  return muster::ps::Main(argc, argv);
}
