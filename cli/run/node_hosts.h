#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/run/job_pods.h"
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

  /// In the cluster, waits for an API server that does not answer, and gives signs of life to
  /// `options.beat_fd`, as the host does when it waits. Errors: kCancelled if `signal_fd` becomes
  /// readable; the host cannot be used.
  absl::StatusOr<std::unique_ptr<NodeHost>> Open(int signal_fd);

 private:
  absl::StatusOr<std::unique_ptr<NodeHost>> OpenMachine() const;
  absl::StatusOr<std::unique_ptr<NodeHost>> OpenPods();

  const RunPlan* const plan_;
  const ScalerCommandOptions* const options_;
  const Clock* const clock_;
  std::unique_ptr<OwnCluster> cluster_;
};

}  // namespace muster
