// How long one request, one image or one growth holds a lane: the longest time that a task posted
// to the lane had to wait, and the CPU time of the lane's thread in it, which a busy machine does
// not distort. Requests of 128 MiB of rows (dim 64, Adagrad) through a real lane over its UNIX
// socket; medians of 5 runs after a warm-up. Run the release build:
//   build/release/benchmarks/lane_hold_bench [--smoke]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "benchmarks/lane/bench_lane.h"
#include "benchmarks/thread_cpu.h"

namespace muster::ps {
namespace {

constexpr uint32_t kPartitions = 256;
constexpr uint32_t kDim = 64;
constexpr TableId kTable{1}, kNormalTable{2};

struct Options {
  uint64_t rows = (128u << 20) / (kDim * sizeof(float));
  int runs = 5;
};

TableSpec Embedding(TableId id, InitializerSpec::Kind kind) {
  TableSpec table;
  table.id = id;
  table.name = fmt::format("embedding-{}", id.value());
  table.dim = kDim;
  table.optimizer = AdagradSpec{};
  table.initializer = {kind, 0, 1};
  return table;
}

/// A handler that takes images, too.
class Handler final : public BenchHandler {
 public:
  Handler()
      : BenchHandler(kPartitions, {Embedding(kTable, InitializerSpec::Kind::kConstant),
                                   Embedding(kNormalTable, InitializerSpec::Kind::kNormal)}) {}

  /// Takes and drops a base of the partition, on the lane's thread; then calls `done`.
  void Snapshot(Lane* lane, PartitionId partition, std::function<void()> done) {
    LaneCommands commands;
    commands.sequence = cut_;
    commands.snapshots.push_back(
        {partition, OwnerEpoch(1), DoneSeq(++cut_), {MasterIncarnation(1), cut_}});
    owned_.Apply(commands);
    MUSTER_CHECK(owned_.BeginImage(TimePoint::max()));
    lane->Post([this, lane, partition, done = std::move(done)] { Copy(lane, partition, done); });
  }
  void Copy(Lane* lane, PartitionId partition, const std::function<void()>& done) {
    WorkLimit work(4u << 20);
    SnapshotJob job;
    if (owned_.CopyImage(&work, &job) == OwnedPartitions::Copy::kMore) {
      return lane->Post([this, lane, partition, done] { Copy(lane, partition, done); });
    }
    image_ = std::move(job.image);
    owned_.Written(partition, {MasterIncarnation(1), cut_}, SnapshotFile{}, TimePoint::max());
    owned_.Report(cut_);
    done();
  }

  /// As the writer's thread does it, after `done`.
  void DropImage() { image_ = {}; }

 private:
  uint64_t cut_ = 0;
  PartitionImage image_;
};

/// One request at a time.
class Client {
 public:
  explicit Client(const std::string& address) : frames_(address, FrameClient::Checksums::kOn) {}

  /// `rows` rows from key `first` on, spread over `partitions` from `partition` on.
  void Pull(TableId table, uint64_t first, uint64_t rows, uint32_t partition, uint32_t partitions,
            wire::Encoding encoding) {
    const wire::Parts parts = PartsOf(table, rows, partition, partitions);
    wire::Header header;
    header.kind = wire::Kind::kPull;
    header.parts = partitions;
    header.encoding = encoding;
    frames_.Send(header, wire::EncodePull(parts), Keys(first, rows), {});
    frames_.Receive();
  }
  void Push(TableId table, uint64_t first, uint64_t rows, uint32_t partition, uint32_t partitions,
            wire::Encoding encoding) {
    const wire::Parts parts = PartsOf(table, rows, partition, partitions);
    const wire::PushIdentity push{.shard_index = minibatch_ / 1024,
                                  .minibatch = static_cast<uint32_t>(minibatch_ % 1024),
                                  .token = 1};
    ++minibatch_;
    wire::Header header;
    header.kind = wire::Kind::kPush;
    header.parts = partitions;
    header.encoding = encoding;
    const std::vector<std::byte> values(rows * kDim * wire::BytesPerValue(encoding));
    frames_.Send(header, wire::EncodePush(push, parts), Keys(first, rows), values);
    frames_.Receive();
  }

 private:
  static std::vector<uint64_t> Keys(uint64_t first, uint64_t rows) {
    std::vector<uint64_t> keys(rows);
    for (uint64_t i = 0; i < rows; ++i) keys[i] = first + i;
    return keys;
  }
  static wire::Parts PartsOf(TableId table, uint64_t rows, uint32_t partition,
                             uint32_t partitions) {
    wire::Parts parts;
    for (uint32_t i = 0; i < partitions; ++i) {
      parts.Add(partition + i, 1, {{table.value(), static_cast<uint32_t>(rows / partitions)}});
    }
    return parts;
  }

  FrameClient frames_;
  uint64_t minibatch_ = 0;
};

/// Posts itself to the lane again and again, and keeps the longest time from one to the next.
class Ticker {
 public:
  explicit Ticker(Lane* lane) : lane_(lane) {}
  void Start() {
    stop_ = false;
    ended_ = {};
    wall_ = cpu_ = {};
    lane_->Post([this] {
      last_wall_ = clock_.Now();
      last_cpu_ = ThreadCpu();
      lane_->Post([this] { Tick(); });
    });
  }
  void Stop() {
    stop_ = true;
    ended_.get_future().get();
  }
  double wall_ms() const { return std::chrono::duration<double, std::milli>(wall_).count(); }
  double cpu_ms() const { return std::chrono::duration<double, std::milli>(cpu_).count(); }

 private:
  void Tick() {
    const TimePoint now = clock_.Now();
    const std::chrono::nanoseconds cpu = ThreadCpu();
    wall_ = std::max<std::chrono::nanoseconds>(wall_, now - last_wall_);
    cpu_ = std::max(cpu_, cpu - last_cpu_);
    last_wall_ = now;
    last_cpu_ = cpu;
    if (stop_) return ended_.set_value();
    lane_->Post([this] { Tick(); });
  }

  Lane* const lane_;
  const SystemClock clock_;
  std::atomic<bool> stop_ = false;
  std::promise<void> ended_;
  TimePoint last_wall_{};
  std::chrono::nanoseconds last_cpu_{0}, wall_{0}, cpu_{0};
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Measure(const Options& options, Ticker* ticker, const char* what,
             const std::function<void()>& action) {
  std::vector<double> wall, cpu, whole;
  const SystemClock clock;
  for (int run = 0; run <= options.runs; ++run) {
    const TimePoint begin = clock.Now();
    ticker->Start();
    action();
    ticker->Stop();
    if (run == 0) continue;  // the warm-up
    wall.push_back(ticker->wall_ms());
    cpu.push_back(ticker->cpu_ms());
    whole.push_back(std::chrono::duration<double, std::milli>(clock.Now() - begin).count());
  }
  fmt::print("  {:<44} held {:7.1f} ms, of it CPU {:7.1f} ms; whole {:7.0f} ms\n", what,
             Median(wall), Median(cpu), Median(whole));
  std::fflush(stdout);
}

int Main(const Options& options) {
  Handler handler;
  const std::string path = fmt::format("/tmp/muster-hold-{}.sock", ::getpid());
  const SystemClock clock;
  Lane lane({.name = "bench", .unix_path = path, .limits = {}, .clock = &clock}, &handler);
  const auto addresses = lane.Listen();
  MUSTER_CHECK(addresses.ok());
  lane.Start();
  Client client(addresses->front());
  Ticker ticker(&lane);
  const uint64_t rows = options.rows;
  constexpr auto kFull = wire::Encoding::kFloat32, kNarrow = wire::Encoding::kBfloat16;
  const auto pushes = [&](const char* what, TableId table, bool fresh, uint32_t partitions,
                          wire::Encoding encoding) {
    uint64_t first = 0;
    Measure(options, &ticker, what, [&] {
      client.Push(table, first, rows, 0, partitions, encoding);
      if (fresh) first += rows;
    });
  };
  const auto pulls = [&](const char* what, TableId table, uint64_t first, uint32_t partitions,
                         wire::Encoding encoding) {
    Measure(options, &ticker, what,
            [&] { client.Pull(table, first, rows, 0, partitions, encoding); });
  };
  pushes("push to 256 partitions", kTable, false, kPartitions, kFull);
  pushes("push to 256 partitions, bfloat16", kTable, false, kPartitions, kNarrow);
  pushes("push to one partition", kTable, false, 1, kFull);
  pushes("push to one partition, new rows", kTable, true, 1, kFull);
  pushes("push to one partition, new normal rows", kNormalTable, true, 1, kFull);
  pulls("pull from 256 partitions", kTable, 0, kPartitions, kFull);
  pulls("pull from 256 partitions, bfloat16", kTable, 0, kPartitions, kNarrow);
  pulls("pull from one partition", kTable, 0, 1, kFull);
  pulls("pull of absent normal rows", kNormalTable, uint64_t{1} << 40, kPartitions, kFull);
  Measure(options, &ticker, "image of one partition", [&] {
    std::promise<void> done;
    lane.Post([&] { handler.Snapshot(&lane, PartitionId(0), [&] { done.set_value(); }); });
    done.get_future().get();
    handler.DropImage();
  });
  return 0;
}

}  // namespace
}  // namespace muster::ps

int main(int count, char** arguments) {
  muster::ps::Options options;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "--smoke") {
      options.rows = 4096;
      options.runs = 1;
    } else {
      fmt::print(
          stderr,
          "Usage: lane_hold_bench [--smoke]\n"
          "  --smoke  few rows: shows in a second that it works, its figures mean nothing\n");
      return 2;
    }
  }
  return muster::ps::Main(options);
}
