#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/run/run_plan.h"
#include "kubernetes/client/client.h"
#include "kubernetes/config/credentials.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/pods/pod_body.h"

/// What the job's own pod asks of its cluster.
namespace muster {

/// The run of a plan whose nodes are pods.
kubernetes::PodRun PodRunOf(const RunPlan& plan);

/// The API server of the cluster in which this process runs. Thread-safe.
class OwnCluster {
 public:
  /// `clock` outlives the result. Errors: this process is not in a pod.
  static absl::StatusOr<std::unique_ptr<OwnCluster>> Open(const Clock* clock);
  OwnCluster(kubernetes::ClusterAccess access, const Clock* clock)
      : credentials_(std::move(access), clock), client_(&credentials_, clock) {}

  kubernetes::CredentialSource* credentials() { return &credentials_; }
  kubernetes::Client& client() { return client_; }

 private:
  kubernetes::CredentialSource credentials_;
  kubernetes::Client client_;
};

/// The pods of a job, for the run in the job's own pod. Errors are those of the API server.
class JobPods {
 public:
  static absl::StatusOr<std::unique_ptr<JobPods>> Open(const RunPlan& plan);

  /// The same as CheckRightsOfJob for this pod. It asks the API server.
  absl::Status CheckRights();
  /// Deletes servers and workers of earlier runs of the job, and waits until they have ended
  /// (kubernetes::FormerPods), for at most 90 s. It says on stderr what it waits for.
  absl::Status EndFormer();
  /// Returns the pods of all runs of the job.
  absl::StatusOr<std::vector<nlohmann::json>> All();
  /// Deletes the pods of the run that its scaler has left behind. An error is only reported on
  /// stderr, because Kubernetes deletes the pods together with the Job.
  void End();

 private:
  explicit JobPods(kubernetes::PodRun run) : run_(std::move(run)) {}
  absl::StatusOr<std::vector<nlohmann::json>> List(const kubernetes::Selection& selection);
  /// Does nothing if the pod is gone or another pod has its name now.
  absl::Status Delete(const kubernetes::ObjectIdentity& pod, kubernetes::DeleteOptions options);

  const SystemClock clock_;
  const kubernetes::PodRun run_;
  std::unique_ptr<OwnCluster> cluster_;
};

}  // namespace muster
