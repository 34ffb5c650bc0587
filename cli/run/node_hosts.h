#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/run/job_pods.h"
#include "cli/run/node_commands.h"
#include "cli/run/run_plan.h"
#include "host/node_host.h"

/// The one place that decides where workers and servers live.
namespace muster {

/// Opens the host of a run. It is this machine, or the cluster if the plan names a namespace.
/// Belongs to one thread, and outlives the host.
class HostOpener {
 public:
  /// `options` has the inherited descriptors. Everything that is pointed to outlives this.
  HostOpener(const RunPlan* plan, const ScalerCommandOptions* options, const Clock* clock);

  /// In the cluster, it waits while the API server does not answer, and gives signs of life to
  /// `options.beat_fd`. The host does the same later when it waits. Errors: kCancelled if
  /// `signal_fd` becomes readable; other errors if the host cannot be used.
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
