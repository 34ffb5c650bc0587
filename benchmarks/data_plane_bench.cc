// Pulls and pushes end to end, one lane and one client over loopback, beside the raw bandwidth of
// the same sockets in the same run. 1 M rows x 64 float32, zipf(0.99) keys, 10,000 unique keys a
// call. Medians of 5 runs after a warm-up. Run the release build on an idle machine:
//   build/release/benchmarks/data_plane_bench [--no-checksums] [--smoke]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "benchmarks/lane/bench_lane.h"
#include "benchmarks/lane/raw_sockets.h"
#include "benchmarks/thread_cpu.h"
#include "sharding/partition_of.h"

namespace muster::ps {
namespace {

constexpr uint32_t kPartitions = 256;
constexpr uint32_t kDim = 64;
constexpr TableId kTable{1};

struct Options {
  FrameClient::Checksums checksums = FrameClient::Checksums::kOn;
  uint64_t rows = 1'000'000;
  int runs = 5;
  int calls = 200;  // of 10,000 keys
};

double Seconds(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

TableSpec Embedding() {
  TableSpec table;
  table.id = kTable;
  table.name = "embedding";
  table.dim = kDim;
  table.optimizer = AdagradSpec{};
  return table;
}

/// zipf(0.99) over `rows`, by inversion of the approximate distribution.
/// Source: Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994.
class Zipf {
 public:
  explicit Zipf(uint64_t rows) : rows_(rows) {
    for (uint64_t i = 1; i <= rows_; ++i) zeta_ += 1.0 / std::pow(static_cast<double>(i), kTheta);
    const double zeta2 = 1.0 + std::pow(0.5, kTheta);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(rows_), 1 - kTheta)) / (1 - zeta2 / zeta_);
  }
  uint64_t Next(Rng* rng) const {
    const double u = rng->Uniform();
    const double uz = u * zeta_;
    if (uz < 1) return 0;
    if (uz < 1 + std::pow(0.5, kTheta)) return Mix64(1) % rows_;
    const double rank =
        static_cast<double>(rows_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kTheta));
    return Mix64(static_cast<uint64_t>(rank)) % rows_;
  }

 private:
  static constexpr double kTheta = 0.99;
  uint64_t rows_;
  double zeta_ = 0;
  double eta_ = 0;
};

/// Keys of one call, in the order of their partitions.
struct Call {
  std::vector<uint64_t> keys;
  std::map<uint32_t, uint32_t> counts;  // by partition
};

Call MakeCall(std::vector<uint64_t> keys) {
  Call call;
  const auto partition = [](uint64_t key) { return PartitionOf(kTable, key, kPartitions).value(); };
  std::ranges::sort(keys, {}, [&](uint64_t key) { return std::pair(partition(key), key); });
  for (uint64_t key : keys) ++call.counts[partition(key)];
  call.keys = std::move(keys);
  return call;
}

Call ZipfCall(const Zipf& zipf, Rng* rng, size_t keys) {
  absl::flat_hash_set<uint64_t> unique;
  while (unique.size() < keys) unique.insert(zipf.Next(rng));
  return MakeCall({unique.begin(), unique.end()});
}

/// Pulls and pushes of calls, as one worker sends them.
class Client {
 public:
  /// `dataset` keeps this client's minibatches apart from those of others.
  Client(const std::string& address, uint32_t dataset, FrameClient::Checksums checksums)
      : frames_(address, checksums), dataset_(dataset) {}

  void SendPull(const Call& call) {
    const wire::Parts parts = PartsOf(call);
    wire::Header header;
    header.kind = wire::Kind::kPull;
    header.parts = static_cast<uint32_t>(parts.size());
    frames_.Send(header, wire::EncodePull(parts), call.keys, {});
  }
  void SendPush(const Call& call, const std::vector<float>& gradients) {
    const wire::Parts parts = PartsOf(call);
    const wire::PushIdentity push{.dataset = dataset_,
                                  .shard_index = minibatch_ / 1024,
                                  .minibatch = static_cast<uint32_t>(minibatch_ % 1024),
                                  .token = 1};
    ++minibatch_;
    wire::Header header;
    header.kind = wire::Kind::kPush;
    header.parts = static_cast<uint32_t>(parts.size());
    frames_.Send(header, wire::EncodePush(push, parts), call.keys,
                 std::as_bytes(std::span(gradients).first(call.keys.size() * kDim)));
  }
  void Receive() { frames_.Receive(); }

 private:
  static wire::Parts PartsOf(const Call& call) {
    wire::Parts parts;
    for (const auto& [partition, count] : call.counts) {
      parts.Add(partition, 1, {{.table = kTable.value(), .keys = count}});
    }
    return parts;
  }

  FrameClient frames_;
  const uint32_t dataset_;
  uint32_t minibatch_ = 0;
};

double LaneCpuSeconds(Lane* lane) {
  std::promise<double> seconds;
  lane->Post([&] { seconds.set_value(ThreadCpuSeconds()); });
  return seconds.get_future().get();
}

/// What one kind of request cost.
struct Cost {
  std::vector<double> rates;  // rows per second of wall time, by run
  double server_cpu = 0;      // seconds over all runs
  double client_cpu = 0;
  double rows = 0;
};

/// Rows per second of `calls` requests, `in_flight` of them at a time.
template <typename Send>
void Measure(Lane* lane, Client* client, const std::vector<Call>& calls, size_t in_flight,
             Cost* cost, Send&& send) {
  const SystemClock clock;
  const double server_cpu = LaneCpuSeconds(lane);
  const double client_cpu = ThreadCpuSeconds();
  const TimePoint begin = clock.Now();
  uint64_t rows = 0;
  for (size_t i = 0; i < calls.size() + in_flight; ++i) {
    if (i >= in_flight) client->Receive();
    if (i >= calls.size()) continue;
    send(calls[i]);
    rows += calls[i].keys.size();
  }
  cost->rates.push_back(static_cast<double>(rows) / Seconds(begin, clock.Now()));
  cost->client_cpu += ThreadCpuSeconds() - client_cpu;
  cost->server_cpu += LaneCpuSeconds(lane) - server_cpu;
  cost->rows += static_cast<double>(rows);
}

void Report(const char* what, const Cost& cost, double raw, double bytes_a_row) {
  const double rate = Median(cost.rates);
  const auto [low, high] = std::ranges::minmax(cost.rates);
  fmt::print(
      "  {:<28} {:6.2f} Mrows/s ({:.2f} to {:.2f}), {:5.2f} GB/s, {:3.0f} % of raw; CPU of server "
      "{:.0f} "
      "and client {:.0f} ns a row\n",
      what, rate / 1e6, low / 1e6, high / 1e6, rate * bytes_a_row / 1e9,
      100 * rate * bytes_a_row / 1e9 / raw, 1e9 * cost.server_cpu / cost.rows,
      1e9 * cost.client_cpu / cost.rows);
}

void SmallPulls(Client* client, const std::vector<Call>& calls) {
  const SystemClock clock;
  std::vector<double> micros;
  for (int round = 0; round < 20; ++round) {
    for (const Call& call : calls) {
      const TimePoint begin = clock.Now();
      client->SendPull(call);
      client->Receive();
      micros.push_back(1e6 * Seconds(begin, clock.Now()));
    }
  }
  std::ranges::sort(micros);
  fmt::print("  {:<28} p50 {:.0f} us, p99 {:.0f} us\n", "pull of 100 keys",
             micros[micros.size() / 2], micros[micros.size() * 99 / 100]);
}

int Main(const Options& options) {
  BenchHandler handler(kPartitions, {Embedding()});
  const std::string path = fmt::format("/tmp/muster-bench-{}.sock", ::getpid());
  const SystemClock clock;
  Lane lane({.name = "bench", .unix_path = path, .limits = {}, .clock = &clock}, &handler);
  const auto addresses = lane.Listen();
  MUSTER_CHECK(addresses.ok());
  lane.Start();

  const Zipf zipf(options.rows);
  Rng rng(1);
  std::vector<Call> calls;
  for (int i = 0; i < options.calls; ++i) calls.push_back(ZipfCall(zipf, &rng, 10'000));
  std::vector<Call> small;
  for (int i = 0; i < 500; ++i) small.push_back(ZipfCall(zipf, &rng, 100));
  const std::vector<float> gradients(10'000 * kDim, 0.01f);

  {
    Client filler(addresses->front(), 0, options.checksums);
    for (uint64_t first = 0; first < options.rows; first += 10'000) {
      std::vector<uint64_t> keys(10'000);
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = first + i;
      filler.SendPush(MakeCall(std::move(keys)), gradients);
      filler.Receive();
    }
  }
  for (const std::string& address : *addresses) {
    const bool unix_socket = address.starts_with("unix:");
    std::vector<double> raws;
    Cost pulls;
    Cost pushes;
    Client client(address, unix_socket ? 1 : 2, options.checksums);
    for (int run = 0; run <= options.runs; ++run) {
      if (run == 1) {  // the first was the warm-up
        raws.clear();
        pulls = pushes = {};
      }
      raws.push_back(SocketRate(unix_socket ? SocketKind::kUnix : SocketKind::kTcp,
                                10'000 * kDim * sizeof(float), 1000) /
                     1e9);
      Measure(&lane, &client, calls, 3, &pulls, [&](const Call& call) { client.SendPull(call); });
      Measure(&lane, &client, calls, 2, &pushes,
              [&](const Call& call) { client.SendPush(call, gradients); });
    }
    const double raw = Median(raws);
    fmt::print("{}, {} checksums: raw {:.2f} GB/s\n", unix_socket ? "UNIX socket" : "TCP",
               options.checksums == FrameClient::Checksums::kOn ? "with" : "without", raw);
    Report("pull, 10,000 keys", pulls, raw, kDim * 4);
    Report("push with Adagrad", pushes, raw, kDim * 4 + 8);
    SmallPulls(&client, small);
  }
  return 0;
}

}  // namespace
}  // namespace muster::ps

int main(int count, char** arguments) {
  muster::ps::Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--no-checksums") {
      options.checksums = muster::ps::FrameClient::Checksums::kOff;
    } else if (argument == "--smoke") {
      options.rows = 50'000;
      options.runs = 1;
      options.calls = 10;
    } else {
      fmt::print(stderr,
                 "Usage: data_plane_bench [--no-checksums] [--smoke]\n"
                 "  --smoke  few rows and calls: shows in a second that it works, its figures mean "
                 "nothing\n");
      return 2;
    }
  }
  return muster::ps::Main(options);
}
