#include "cli/cluster/cluster_access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "job/file/load_job.h"
#include "kubernetes/config/kubeconfig.h"

namespace muster::cluster {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// $KUBECONFIG may name several files, and kubectl skips missing ones. Returns the only one that
/// exists; empty if the variable names none.
absl::StatusOr<std::string> OneFileOf(const std::string& variable) {
  std::vector<std::string> named = absl::StrSplit(variable, ':', absl::SkipEmpty());
  if (named.size() > 1) {
    std::erase_if(named, [](const std::string& path) { return ::access(path.c_str(), F_OK) != 0; });
  }
  if (named.empty()) return variable;
  if (named.size() == 1) return named.front();
  return absl::InvalidArgumentError(fmt::format(
      "$KUBECONFIG names several files, and muster reads one: name it with --kubeconfig, or merge "
      "them (`kubectl config view --flatten > FILE`). There are {}",
      fmt::join(named, ", ")));
}

absl::StatusOr<kubernetes::ClusterAccess> LoadOne(const std::string& path,
                                                  const std::string& context) {
  absl::StatusOr<kubernetes::ClusterAccess> access = kubernetes::LoadKubeconfig(path, context);
  if (::access(path.c_str(), F_OK) == 0) return access;
  return absl::NotFoundError(
      fmt::format("there is no kubeconfig {}: name the file that kubectl uses with --kubeconfig or "
                  "$KUBECONFIG",
                  path));
}

absl::StatusOr<kubernetes::ClusterAccess> FindAccess(const ClusterTarget& target) {
  if (!target.kubeconfig.empty()) {
    return LoadOne(target.kubeconfig, target.context);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string named, OneFileOf(Variable("KUBECONFIG")));
  const std::string path = named.empty() ? Variable("HOME") + "/.kube/config" : named;
  const std::string host = Variable("KUBERNETES_SERVICE_HOST");
  const bool in_pod =
      named.empty() && target.context.empty() && !host.empty() && ::access(path.c_str(), F_OK) != 0;
  if (!in_pod) return LoadOne(path, target.context);
  return kubernetes::InClusterAccess(host, Variable("KUBERNETES_SERVICE_PORT"),
                                     std::string(kubernetes::kServiceAccountFolder));
}

}  // namespace

absl::StatusOr<JobPlace> PlaceOf(const JobTarget& target) {
  JobPlace place{.job = target.cluster.job, .ns = target.cluster.ns};
  if (!place.job.empty() && target.job_file.empty()) return place;
  const std::string file = JobFileOf(target);
  if (target.job_file.empty() && ::access(file.c_str(), F_OK) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("there is no ./{}; name the job's file, or the job (--job NAME)", file));
  }
  MUSTER_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(file, ""));
  if (place.job.empty()) place.job = job.spec.name;
  if (place.ns.empty()) place.ns = job.spec.kubernetes.ns;
  return place;
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Open(const ClusterTarget& target,
                                                       const std::string& ns) {
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ClusterAccess access, FindAccess(target));
  const std::string present = ns.empty() ? access.ns : ns;
  return std::make_unique<Cluster>(std::move(access), present);
}

Cluster::Cluster(kubernetes::ClusterAccess access, const std::string& ns)
    : credentials_(std::move(access), &clock_), client_(&credentials_, &clock_), ns_(ns) {}

std::string Cluster::Where() const {
  return fmt::format("the namespace {} of {}", ns_, credentials_.access().Url());
}

}  // namespace muster::cluster
