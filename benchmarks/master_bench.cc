// How many shards a second the master leases and takes done, how long a restart takes, and what it
// costs in memory: the core alone, and the whole master with a synced journal over gRPC.
//   master_bench [--smoke] [--disk-delay MS] [shards] [workers] [shards per call]
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/version.h"
#include "benchmarks/master_job.h"
#include "benchmarks/whole_number.h"
#include "master/service/master_server.h"
#include "proto/control.grpc.pb.h"
#include "proto/messages/job_identity.h"

namespace muster {
namespace {

/// Of one call to the master.
constexpr int kTriesMax = 10;
constexpr int kDeadlineSeconds = 20;
constexpr std::chrono::milliseconds kPauseBetweenTries{20};

constexpr uint64_t kMaxNumber = 1'000'000'000;

struct Sizes {
  uint64_t shards = 1'000'000;
  uint32_t workers = 64;
  uint32_t batch = 100;
  /// The extra time of every sync of the journal.
  std::chrono::milliseconds disk_delay{0};
};

/// A journal on a slow disk.
class SlowJournal final : public Journal {
 public:
  SlowJournal(std::unique_ptr<Journal> journal, std::chrono::milliseconds delay)
      : journal_(std::move(journal)), delay_(delay) {}

  const std::string& job_id() const override { return journal_->job_id(); }
  DurableState TakeState() override { return journal_->TakeState(); }
  absl::Status Write(std::span<const Mutation> mutations) override {
    ++syncs_;
    if (delay_.count() > 0) SleepFor(delay_);
    return journal_->Write(mutations);
  }
  uint64_t syncs() const { return syncs_; }

 private:
  const std::unique_ptr<Journal> journal_;
  const std::chrono::milliseconds delay_;
  uint64_t syncs_ = 0;
};

double Seconds(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

uint64_t PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) / 1024;
}

void BenchCore(const Sizes& sizes) {
  const SystemClock clock;
  MasterCore core(MasterJobOptions(sizes.shards), {}, {clock.Now(), {}});
  const TimePoint began = clock.Now();
  WorkerExchangeRequest request;
  request.worker = "worker-0";
  request.incarnation = 1;
  request.want = sizes.batch;
  uint64_t done = 0;
  while (done < sizes.shards) {
    ++request.sequence;
    const WorkerExchangeReply reply = core.ExchangeWorker(request, {clock.Now(), {}}).value();
    done += request.done.size();
    request.done.clear();
    request.map_version = core.partitions().version();
    for (const ShardGrant& grant : reply.grants) {
      request.newest_grant = grant.token;
      request.done.push_back({grant.shard, grant.token, grant.restore_epoch, {}, {}});
    }
    MUSTER_CHECK(!core.TakeMutations().empty());
  }
  const double seconds = Seconds(began, clock.Now());
  fmt::print("core alone, batches of {}: {:.0f} shards/s\n", sizes.batch,
             static_cast<double>(sizes.shards) / seconds);
}

/// Repeats `call` until the master answers it, as the SDK does, because a call that fails on a busy
/// machine says nothing about the master. The error is printed; any other error ends the process.
void UntilAnswered(std::string_view what,
                   const std::function<grpc::Status(grpc::ClientContext*)>& call) {
  grpc::Status status;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    if (tries > 0) SleepFor(kPauseBetweenTries);
    grpc::ClientContext context;
    context.AddMetadata(kJobIdMetadata, kMasterJobId);
    context.set_wait_for_ready(true);
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_seconds(kDeadlineSeconds, GPR_TIMESPAN)));
    status = call(&context);
    if (status.ok()) return;
    fmt::print(stderr, "{}: status {}: {}\n", what, static_cast<int>(status.error_code()),
               status.error_message());
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
        status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      break;
    }
  }
  MUSTER_CHECK_MSG(status.ok(), status.error_message());
}

/// One worker over gRPC until nothing is left; appends the milliseconds of every call but the
/// first.
void RunWorker(const std::string& address, uint32_t id, const Sizes& sizes, const Clock& clock,
               std::atomic<uint64_t>* done, std::vector<double>* call_ms) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("worker", static_cast<int>(id));  // a connection of its own
  auto stub = v1::WorkerService::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  v1::WorkerExchangeRequest request;
  request.set_worker("worker-" + std::to_string(id));
  request.set_incarnation(id + 1);
  request.set_want(sizes.batch);
  while (true) {
    v1::WorkerExchangeReply reply;
    const TimePoint began = clock.Now();
    UntilAnswered(request.worker(), [&](grpc::ClientContext* context) {
      request.set_sequence(request.sequence() + 1);
      return stub->Exchange(context, request, &reply);
    });
    // The first one makes the connection.
    if (request.sequence() > 1) call_ms->push_back(Seconds(began, clock.Now()) * 1000);
    *done += static_cast<uint64_t>(reply.verdicts_size());
    if (reply.directive() != 0 || (reply.grants_size() == 0 && request.done_size() == 0)) return;
    request.clear_done();
    if (reply.has_map()) request.set_map_version(reply.map().version());
    for (const v1::ShardGrant& grant : reply.grants()) {
      v1::DoneReport* report = request.add_done();
      *report->mutable_shard() = grant.shard();
      report->set_token(grant.token());
      report->set_restore_epoch(grant.restore_epoch());
      report->mutable_metrics()->set_records(kMasterJobRecords);
      request.set_newest_grant(std::max<uint64_t>(request.newest_grant(), grant.token()));
    }
  }
}

/// A parameter server without rows: reports every snapshot that is asked for, until `stop`.
void RunServer(const std::string& address, const Clock& clock, const std::atomic<bool>* stop) {
  auto stub =
      v1::ServerService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  v1::RegisterServerRequest registration;
  registration.set_name("ps-0");
  registration.set_nonce(1);
  registration.set_version(std::string(kCompatibleVersion));
  v1::RegisterServerReply registered;
  UntilAnswered("register", [&](grpc::ClientContext* context) {
    return stub->Register(context, registration, &registered);
  });
  v1::ServerExchangeRequest request;
  request.set_incarnation(registered.incarnation());
  TimePoint next = clock.Now();
  while (!stop->load()) {
    next += std::chrono::milliseconds(50);
    v1::ServerExchangeReply reply;
    UntilAnswered(registration.name(), [&](grpc::ClientContext* context) {
      request.set_sequence(request.sequence() + 1);
      return stub->Exchange(context, request, &reply);
    });
    for (const v1::OwnCommand& own : reply.owns()) {
      v1::OwnedPartition* owned = request.add_owned();
      owned->set_partition(own.partition());
      owned->set_epoch(own.epoch());
    }
    request.clear_snapshots();
    for (const v1::SnapshotCommand& command : reply.snapshots()) {
      v1::SnapshotReport* report = request.add_snapshots();
      report->set_partition(command.partition());
      report->set_epoch(command.epoch());
      report->mutable_manifest()->set_number(command.number());
      report->mutable_manifest()->set_cut(command.cut());
    }
    SleepFor(next - clock.Now());
  }
}

auto StartServer(const Sizes& sizes, const std::string& folder, const SourceCatalog* sources,
                 Journal* journal, const Clock* clock) {
  MasterServer::Options options;
  options.job.name = "bench";
  options.job.snapshot_directory = folder + "/snapshots";
  options.core = MasterJobOptions(sizes.shards);
  options.listen_address = "127.0.0.1:0";
  options.token_file = folder + "/token";
  options.job.datasets.resize(1);
  options.sources = sources;
  return MasterServer::Start(options, journal, clock);
}

void BenchServer(const Sizes& sizes, const std::string& folder) {
  const SystemClock clock;
  SlowJournal journal(OpenMasterJournal(folder), sizes.disk_delay);
  const SourceCatalog sources = MasterJobSources(sizes.shards);
  auto server = StartServer(sizes, folder, &sources, &journal, &clock);
  MUSTER_CHECK_MSG(server.ok(), server.status().ToString());
  const std::string address = "127.0.0.1:" + std::to_string((*server)->port());
  std::atomic<uint64_t> done = 0;
  std::vector<std::vector<double>> call_ms(sizes.workers);
  std::vector<std::thread> workers;
  std::atomic<bool> stop = false;
  std::thread parameter_server([&] { RunServer(address, clock, &stop); });
  const TimePoint began = clock.Now();
  for (uint32_t id = 0; id < sizes.workers; ++id) {
    workers.emplace_back([&, id] { RunWorker(address, id, sizes, clock, &done, &call_ms[id]); });
  }
  for (std::thread& worker : workers) worker.join();
  stop = true;
  parameter_server.join();
  const double seconds = Seconds(began, clock.Now());
  std::vector<double> all;
  for (const auto& one : call_ms) all.insert(all.end(), one.begin(), one.end());
  std::sort(all.begin(), all.end());
  fmt::print(
      "master over gRPC, synced, {} workers, {} a call: {:.0f} shards/s, {} calls, p50 {:.2f} ms, "
      "p99 {:.2f} ms, peak {} MB (clients included) for {} shards\n",
      sizes.workers, sizes.batch, static_cast<double>(done) / seconds, all.size(),
      all[all.size() / 2], all[all.size() * 99 / 100], PeakMegabytes(), done.load());
  (*server)->Stop();
  fmt::print("{} syncs, one in {:.2f} ms, of which {} ms are the disk's delay\n", journal.syncs(),
             1000 * seconds / static_cast<double>(journal.syncs()), sizes.disk_delay.count());
}

void BenchRestart(const Sizes& sizes, const std::string& folder) {
  const SystemClock clock;
  const TimePoint began = clock.Now();
  auto journal = OpenMasterJournal(folder);
  const SourceCatalog sources = MasterJobSources(sizes.shards);
  auto server = StartServer(sizes, folder, &sources, journal.get(), &clock);
  MUSTER_CHECK_MSG(server.ok(), server.status().ToString());
  fmt::print("restart after {} shards: {:.3f} s to serving\n", sizes.shards,
             Seconds(began, clock.Now()));
  (*server)->Stop();
}

constexpr char kUsage[] =
    "Usage: master_bench [--smoke] [--disk-delay MS] [shards] [workers] [shards per call]\n"
    "  --disk-delay  by which every sync of the journal takes longer, as on a slow disk\n"
    "  --smoke       few shards and workers: shows in a second that it works, its figures mean "
    "nothing\n";

/// As kUsage says; nothing if an argument is something else.
std::optional<Sizes> Parse(std::span<char*> arguments) {
  Sizes sizes;
  std::vector<uint64_t> numbers;
  bool is_delay = false;
  for (const std::string_view argument : arguments) {
    if (argument == "--smoke") {
      sizes = {.shards = 20'000, .workers = 4, .batch = 100, .disk_delay = sizes.disk_delay};
      continue;
    }
    if (argument == "--disk-delay" && !std::exchange(is_delay, true)) continue;
    const std::optional<uint64_t> number = WholeNumber(argument, kMaxNumber);
    if (!number) return std::nullopt;
    if (std::exchange(is_delay, false)) {
      sizes.disk_delay = std::chrono::milliseconds(*number);
    } else {
      numbers.push_back(*number);
    }
  }
  if (is_delay) return std::nullopt;
  if (numbers.size() > 3) return std::nullopt;
  if (!numbers.empty()) sizes.shards = numbers[0];
  if (numbers.size() > 1) sizes.workers = static_cast<uint32_t>(numbers[1]);
  if (numbers.size() > 2) sizes.batch = static_cast<uint32_t>(numbers[2]);
  return sizes;
}

int Main(std::span<char*> arguments) {
  // A printed line must be visible even if a later check ends the process.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::optional<Sizes> sizes = Parse(arguments);
  if (!sizes) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  const std::string folder = MakePrivateFolder(TemporaryFolder(), "muster-master-bench").value();
  BenchCore(*sizes);
  BenchServer(*sizes, folder);
  BenchRestart(*sizes, folder);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(std::span(argv, static_cast<size_t>(argc)).subspan(1));
}
