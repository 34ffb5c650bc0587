#include "cli/run/job_pods.h"

#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/run/pod_environment.h"
#include "cli/run/pod_run.h"
#include "cli/show/output.h"
#include "job/in_cluster.h"
#include "kubernetes/config/kubeconfig.h"
#include "kubernetes/pods/former_pods.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kLookAgain{1'000};

}  // namespace

kubernetes::PodRun PodRunOf(const RunPlan& plan) {
  return {
      .job = InClusterNames(plan.job.name).job, .ns = plan.cluster_namespace, .run = plan.run_id};
}

absl::StatusOr<std::unique_ptr<OwnCluster>> OwnCluster::Open(const Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(
      kubernetes::ClusterAccess access,
      kubernetes::InClusterAccess(ReadEnvironment("KUBERNETES_SERVICE_HOST").value_or(""),
                                  ReadEnvironment("KUBERNETES_SERVICE_PORT").value_or(""),
                                  std::string(kubernetes::kServiceAccountFolder)));
  return std::make_unique<OwnCluster>(std::move(access), clock);
}

absl::StatusOr<std::unique_ptr<JobPods>> JobPods::Open(const RunPlan& plan) {
  std::unique_ptr<JobPods> pods(new JobPods(PodRunOf(plan)));
  MUSTER_ASSIGN_OR_RETURN(pods->cluster_, OwnCluster::Open(&pods->clock_));
  return pods;
}

absl::Status JobPods::CheckRights() {
  return CheckRightsOfJob(run_.ns, [&](const kubernetes::Right& right) {
    return cluster_->client().MayI(right.verb, right.resource, right.subresource, run_.ns);
  });
}

absl::StatusOr<std::vector<nlohmann::json>> JobPods::List(const kubernetes::Selection& selection) {
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ObjectList pods,
                          cluster_->client().List(kubernetes::Resource::kPods, run_.ns, selection));
  return std::move(pods.items);
}

absl::Status JobPods::Delete(const kubernetes::ObjectIdentity& pod,
                             kubernetes::DeleteOptions options) {
  options.uid = pod.uid;
  const absl::Status deleted =
      cluster_->client()
          .Delete({.resource = kubernetes::Resource::kPods, .ns = run_.ns, .name = pod.name},
                  options)
          .status();
  // Aborted means that another pod has this name now.
  return absl::IsNotFound(deleted) || absl::IsAborted(deleted) ? absl::OkStatus() : deleted;
}

absl::Status JobPods::EndFormer() {
  kubernetes::FormerPods former(run_);
  std::vector<std::string> said;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<nlohmann::json> pods, All());
    kubernetes::FormerPods::Step step = former.Look(pods, clock_.Now());
    for (const kubernetes::ObjectIdentity& pod : step.deletions) {
      MUSTER_RETURN_IF_ERROR(Delete(pod, {.grace = kubernetes::FormerPods::kGrace}));
    }
    if (step.waits.empty()) return absl::OkStatus();
    if (step.waits != said) {
      PrintNote(fmt::format("waiting for pods of an earlier run to end: {}",
                            fmt::join(step.waits, ", ")));
      said = std::move(step.waits);
    }
    SleepFor(kLookAgain);
  }
}

absl::StatusOr<std::vector<nlohmann::json>> JobPods::All() {
  return List(kubernetes::PodsOfAllRuns(run_));
}

void JobPods::End() {
  const absl::StatusOr<std::vector<nlohmann::json>> pods = List(kubernetes::PodsOf(run_));
  absl::Status ended = pods.status();
  if (pods.ok()) {
    for (const nlohmann::json& pod : *pods) ended.Update(Delete(kubernetes::IdentityOf(pod), {}));
  }
  if (!ended.ok()) PrintNote(fmt::format("pods of the run may be left: {}", Message(ended)));
}

}  // namespace muster
