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

/// Asks the API server about the job. It takes two requests, and some more if the job waits. If the
/// job does not exist, that is no error.
absl::StatusOr<JobLook> LookAt(Cluster* cluster, const std::string& job);

/// All pods of the job: those of master and scaler, of workers and of servers.
absl::StatusOr<std::vector<nlohmann::json>> PodsOf(Cluster* cluster, const std::string& job);

/// One line for each server and worker whose pod has had a machine for long and has not begun. It
/// quotes Kubernetes. Empty if the user may not see the events.
std::vector<std::string> StuckNodes(Cluster* cluster, const std::string& job);

/// Looks at a job every 2 s, in a thread of its own. Thread-safe.
class JobWatch {
 public:
  static constexpr std::chrono::seconds kInterval{2};

  /// Starts at once, with `first`. The thread calls `on_look`, which may be empty, after each look
  /// that succeeded. It watches only the Job with the UID of `first`. If there is another Job with
  /// that name, the stage is kReplaced. `cluster` must outlive this.
  JobWatch(Cluster* cluster, std::string job, JobLook first,
           std::function<void(const JobLook&)> on_look);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  /// The newest look that succeeded.
  JobLook newest() const;
  /// Why the last look failed; OK if it did not.
  absl::Status trouble() const;
  /// The pod that runs now. It comes from the newest look, or from a new one if that is too old.
  /// Errors: kUnavailable says why there is none.
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
