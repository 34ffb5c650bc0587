#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/job_look.h"

namespace muster::cluster {

/// Asks the API server about the job: two requests, and some more about a job that waits. A job
/// that is not there is no error.
absl::StatusOr<JobLook> LookAt(Cluster* cluster, const std::string& job);

/// All pods of the job: of master and scaler, workers and servers.
absl::StatusOr<std::vector<nlohmann::json>> PodsOf(Cluster* cluster, const std::string& job);

/// One line for each server and worker whose pod has a machine and has not begun for long, with the
/// words of Kubernetes. Empty if the user may not see them.
std::vector<std::string> StuckNodes(Cluster* cluster, const std::string& job);

/// Looks at a job every 2 s, in its own thread. Thread-safe.
class JobWatch {
 public:
  static constexpr std::chrono::seconds kInterval{2};

  /// Starts at once, with `first`. `on_look` is called in the thread, after each look that
  /// succeeded; may be empty. Only the Job with the UID of `first` is looked at: another one of its
  /// name makes it kReplaced. `cluster` must outlive this.
  JobWatch(Cluster* cluster, std::string job, JobLook first,
           std::function<void(const JobLook&)> on_look);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  /// The newest look that succeeded.
  JobLook newest() const;
  /// Why the last look did not succeed; OK if it did.
  absl::Status trouble() const;
  /// The pod that runs now: as last seen, or asked for if that is too long ago. kUnavailable: why
  /// there is none.
  absl::StatusOr<std::string> FindPod();

 private:
  void Run(const std::stop_token& stop);
  void Look();

  Cluster* const cluster_;
  const std::string job_;
  const std::string uid_;
  const std::function<void(const JobLook&)> on_look_;
  mutable Mutex mutex_;
  CondVar stopping_;
  JobLook newest_ MUSTER_GUARDED_BY(mutex_);
  TimePoint seen_at_ MUSTER_GUARDED_BY(mutex_);
  absl::Status trouble_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace muster::cluster
