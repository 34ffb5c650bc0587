#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state/state_directory.h"
#include "verify/checker.h"

namespace muster::verify {

enum class JobKind : uint8_t {
  kServers,  // parameter servers have the weights
  kGroup,    // the workers are one synchronous group
};

struct VerifyJobOptions {
  JobKind kind = JobKind::kServers;
  std::string directory;  // the job's folder is made in this one
  uint64_t seed = 0;
  uint32_t workers = 2;
  uint32_t servers = 2;
  uint32_t partitions = 64;
  uint32_t faults = 0;  // the job is long enough for this many
  std::string trainer;  // absolute
};

/// The job with whole numbers, in a folder of its own: data, job file, the workers' histories, and
/// a file that keeps the job slow as long as it exists. The folder is removed with the object,
/// unless it is kept. Movable; not thread-safe.
class VerifyJob {
 public:
  /// A worker without a heartbeat for this long loses its shards, and a server its partitions.
  static constexpr std::chrono::milliseconds kLease{1'500};
  static constexpr uint32_t kMinibatchSize = 32;
  static constexpr uint32_t kMinibatchesPerShard = 4;
  /// For a group: records per minibatch, and minibatches per step.
  static constexpr uint32_t kGroupMinibatchSize = 8;
  static constexpr uint32_t kMinibatchesPerStep = 8;

  /// A workload with as many records as that many faults need. For all numbers that `muster verify`
  /// takes, there are fewer than 2^24 trainings of a record, because float32 counts exactly up to
  /// there.
  static Workload WorkloadFor(uint32_t faults, JobKind kind = JobKind::kServers);
  /// Makes the folder with all its files. Errors name the folder or the file.
  static absl::StatusOr<VerifyJob> Create(const VerifyJobOptions& options);
  /// The same job in a folder inside the folder of this one, which must outlive it.
  absl::StatusOr<VerifyJob> CreateTwin(const std::string& name) const;
  VerifyJob(VerifyJob&& other) noexcept;
  VerifyJob& operator=(VerifyJob&&) = delete;
  ~VerifyJob();

  const Workload& workload() const { return workload_; }
  const VerifyJobOptions& options() const { return options_; }
  const std::string& folder() const { return folder_; }
  std::string job_file() const { return folder_ + "/job.yaml"; }
  std::string histories() const { return folder_ + "/histories"; }
  std::string export_folder() const { return folder_ + "/export"; }
  /// For a group: each process writes its state there at the end.
  std::string results() const { return folder_ + "/results"; }
  StateDirectory state() const { return StateDirectory(folder_ + "/state"); }

  /// Makes minibatches take 2^doublings times as long, a second at most. This slows down a job that
  /// is faster than its faults.
  void SlowDown(uint32_t doublings);
  /// From now on the job runs at full speed.
  void Hurry();
  void Keep() { kept_ = true; }
  bool kept() const { return kept_; }

 private:
  VerifyJob(std::string folder, VerifyJobOptions options);
  absl::Status WriteAll();
  std::string JobFileText() const;
  std::string slow_file() const { return folder_ + "/slow"; }

  VerifyJobOptions options_;
  std::string folder_;
  Workload workload_;
  std::chrono::microseconds pace_;
  uint32_t doublings_ = 0;
  bool kept_ = false;
};

}  // namespace muster::verify
