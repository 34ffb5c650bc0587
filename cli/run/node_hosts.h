#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/run/node_commands.h"
#include "cli/run/run_plan.h"
#include "host/node_host.h"

/// Where workers and servers live: the one place that chooses.
namespace muster {

/// Opens the host of a run: this machine, or the cluster if the plan names its namespace. Belongs
/// to one thread, and outlives the host.
class HostOpener {
 public:
  /// `options` has the inherited descriptors. What is pointed to outlives this.
  HostOpener(const RunPlan* plan, const ScalerCommandOptions* options, const Clock* clock);
  ~HostOpener();

  /// In the cluster, waits for an API server that does not answer, and gives signs of life to
  /// `options.beat_fd`, as the host does when it waits. Errors: kCancelled if `signal_fd` becomes
  /// readable; the host cannot be used.
  absl::StatusOr<std::unique_ptr<NodeHost>> Open(int signal_fd);

 private:
  class Cluster;
  absl::StatusOr<std::unique_ptr<NodeHost>> OpenMachine() const;

  const RunPlan* const plan_;
  const ScalerCommandOptions* const options_;
  const Clock* const clock_;
  std::unique_ptr<Cluster> cluster_;
};

/// As in CheckRights: of this pod, by asking the API server.
absl::Status CheckOwnRights(const std::string& ns);

/// Deletes servers and workers of earlier runs of the job, and waits until they have ended
/// (kubernetes::FormerPods; at most 90 s). Says on stderr what it waits for. Errors: of the API
/// server.
absl::Status EndFormerPods(const RunPlan& plan);

/// The pods of all runs of the job. Errors: of the API server.
absl::StatusOr<std::vector<nlohmann::json>> PodsOfJob(const RunPlan& plan);

/// Deletes the pods of the run that its scaler has left behind. An error is said on stderr: the
/// pods then go with the Job.
void EndPods(const RunPlan& plan);

}  // namespace muster
