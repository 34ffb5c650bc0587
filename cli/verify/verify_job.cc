#include "cli/verify/verify_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "proto/fields/json.h"

namespace muster::verify {
namespace {

using std::chrono::microseconds;

constexpr uint32_t kEpochs = 3;
/// How long a minibatch takes with one worker. Several workers share this rate, so the job takes
/// the same time with any number of them.
constexpr microseconds kMinibatchOfOne{15'000};
constexpr microseconds kPaceMax{1'000'000};
/// The same for a group. Its minibatches are smaller, because it must make more steps than there
/// are faults.
constexpr microseconds kGroupMinibatchOfOne{20'000};
/// Faults come every second on average. A job that is faster is slowed down (DoublingsFor).
constexpr double kSecondsBeside = 5;
constexpr double kSecondsAFault = 1;

constexpr char kJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: verify}}
spec:
  seed: {seed}
  partitions: {partitions}
  stateDirectory: state
  snapshots: {{interval: 700ms}}
  datasets:
    - name: numbers
      files: ["numbers-*.txt"]
      epochs: {epochs}
      minibatchSize: {minibatch}
      minibatchesPerShard: {shard}
      shuffle: true
  leases: {{duration: {lease}ms, gracePeriod: 1s, heartbeatInterval: 100ms}}
  servers: {{timeout: {lease}ms, heartbeatInterval: 100ms}}
  restarts: {{crashLoopExits: 1000, backoffInitial: 100ms, backoffMax: 500ms}}
  replicaSpecs:
    ps:     {{replicas: {servers}}}
    worker: {{replicas: {workers}, command: {command}}}
)";

constexpr char kGroupJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: verify-group}}
spec:
  seed: {seed}
  partitions: 1
  stateDirectory: state
  snapshots: {{interval: 700ms}}
  group: {{globalBatch: {batch}, silenceLimit: {lease}ms}}
  datasets:
    - name: numbers
      files: ["numbers-*.txt"]
      epochs: {epochs}
      minibatchSize: {minibatch}
      shuffle: true
  leases: {{duration: {lease}ms, gracePeriod: 1s, heartbeatInterval: 100ms}}
  restarts: {{crashLoopExits: 1000, backoffInitial: 100ms, backoffMax: 500ms}}
  replicaSpecs:
    ps:     {{replicas: 1}}
    worker: {{replicas: {workers}, command: {command}}}
)";

microseconds MinibatchOfOne(JobKind kind) {
  return kind == JobKind::kGroup ? kGroupMinibatchOfOne : kMinibatchOfOne;
}

/// Writes the records into files of different lengths.
absl::Status WriteData(const std::string& folder, uint64_t records) {
  constexpr std::array kShares = {0.1, 0.5, 0.7, 1.0};
  uint64_t id = 0;
  for (size_t i = 0; i < kShares.size(); ++i) {
    std::string text;
    const auto end = static_cast<uint64_t>(kShares[i] * static_cast<double>(records));
    for (; id < end; ++id) text += fmt::format("{}\n", id);
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(fmt::format("{}/numbers-{}.txt", folder, i), text));
  }
  return absl::OkStatus();
}

}  // namespace

Workload VerifyJob::WorkloadFor(uint32_t faults, JobKind kind) {
  const double seconds = kSecondsBeside + kSecondsAFault * faults;
  const double minibatches = seconds * 1e6 / static_cast<double>(MinibatchOfOne(kind).count());
  const uint32_t size = kind == JobKind::kGroup ? kGroupMinibatchSize : kMinibatchSize;
  return {.records = static_cast<uint64_t>(minibatches) * size / kEpochs, .epochs = kEpochs};
}

VerifyJob::VerifyJob(std::string folder, VerifyJobOptions options)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      workload_(WorkloadFor(options_.faults, options_.kind)),
      pace_(MinibatchOfOne(options_.kind) * options_.workers) {}

VerifyJob::VerifyJob(VerifyJob&& other) noexcept
    : options_(std::move(other.options_)),
      folder_(std::exchange(other.folder_, "")),
      workload_(other.workload_),
      pace_(other.pace_),
      doublings_(other.doublings_),
      kept_(other.kept_) {}

VerifyJob::~VerifyJob() {
  if (folder_.empty() || kept_) return;
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

absl::StatusOr<VerifyJob> VerifyJob::Create(const VerifyJobOptions& options) {
  MUSTER_RETURN_IF_ERROR(MakeWritable(options.directory, "--directory"));
  std::error_code error;
  std::string folder = std::filesystem::canonical(options.directory, error).string();
  if (error) return ErrnoStatus(error.value(), options.directory);
  MUSTER_ASSIGN_OR_RETURN(folder, MakePrivateFolder(folder, "muster-verify"));
  VerifyJob job(std::move(folder), options);
  MUSTER_RETURN_IF_ERROR(job.WriteAll());
  return job;
}

absl::StatusOr<VerifyJob> VerifyJob::CreateTwin(const std::string& name) const {
  VerifyJob twin(folder_ + "/" + name, options_);
  // The folder around it is removed or kept with everything in it.
  twin.Keep();
  MUSTER_RETURN_IF_ERROR(MakeDirectories(twin.folder()));
  MUSTER_RETURN_IF_ERROR(twin.WriteAll());
  return twin;
}

absl::Status VerifyJob::WriteAll() {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(histories()));
  if (options_.kind == JobKind::kGroup) MUSTER_RETURN_IF_ERROR(MakeDirectories(results()));
  MUSTER_RETURN_IF_ERROR(WriteData(folder_, workload_.records));
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(slow_file(), ""));
  return WriteFileAtomically(job_file(), JobFileText());
}

std::string VerifyJob::JobFileText() const {
  nlohmann::json command = {options_.trainer, "--slow-us", fmt::format("{}", pace_.count()),
                            "--slow-while",   slow_file(), "--history",
                            histories()};
  const bool group = options_.kind == JobKind::kGroup;
  if (group) {
    command.push_back("--group-records");
    command.push_back(fmt::format("{}", workload_.records));
    command.push_back("--results");
    command.push_back(results());
  }
  return fmt::format(fmt::runtime(group ? kGroupJob : kJob), fmt::arg("seed", options_.seed),
                     fmt::arg("partitions", options_.partitions),
                     fmt::arg("epochs", workload_.epochs),
                     fmt::arg("minibatch", group ? kGroupMinibatchSize : kMinibatchSize),
                     fmt::arg("shard", kMinibatchesPerShard),
                     fmt::arg("batch", kGroupMinibatchSize * kMinibatchesPerStep),
                     fmt::arg("lease", kLease.count()), fmt::arg("servers", options_.servers),
                     fmt::arg("workers", options_.workers), fmt::arg("command", JsonText(command)));
}

void VerifyJob::SlowDown(uint32_t doublings) {
  if (doublings == doublings_) return;
  doublings_ = doublings;
  const microseconds pace = std::min(kPaceMax, pace_ * (int64_t{1} << std::min(doublings, 20U)));
  // A worker that reads a half-written file uses the pace of its command line that one time.
  std::ofstream(slow_file()) << pace.count() << '\n';
}

void VerifyJob::Hurry() {
  ::unlink(slow_file().c_str());
}

}  // namespace muster::verify
