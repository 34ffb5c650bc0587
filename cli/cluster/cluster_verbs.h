#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/ask/list_command.h"
#include "cli/ask/stacks_command.h"
#include "cli/cluster/job_look.h"
#include "cli/state/cluster_target.h"
#include "cli/steer/wait_command.h"

/// Verbs for Kubernetes that cannot work over a private folder (job_link.h). Each returns the exit
/// code.
namespace muster::cluster {

/// A row of `muster list --on kubernetes`.
struct ListedClusterJob {
  std::string name;
  JobLook look;
  /// The number of running pods.
  int64_t workers = 0;
  int64_t servers = 0;
};
/// All jobs of Muster among `jobs`, ordered by name, with the numbers of their pods. Pure.
std::vector<ListedClusterJob> JobsOf(const std::vector<nlohmann::json>& jobs,
                                     const std::vector<nlohmann::json>& pods);
/// The list as text. Pure.
std::string ListText(const std::vector<ListedClusterJob>& jobs, const std::string& where);
nlohmann::json ListToJson(const std::vector<ListedClusterJob>& jobs);
int ListOnCluster(const ClusterTarget& target, OutputFormat output);

/// `muster wait --for end`. The exit code is that of the run. It asks only the API server.
int WaitForEndOnCluster(const steer::WaitOptions& options);

/// Says which command shows the stacks, because only a process in the pod can read them.
int StacksOnCluster(const StacksOptions& options);

}  // namespace muster::cluster
