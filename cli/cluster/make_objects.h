#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/job_look.h"
#include "kubernetes/manifests/objects.h"

/// What `muster run --on kubernetes` makes before it follows the job.
namespace muster::cluster {

using SayFn = std::function<void(std::string_view)>;

/// Makes the Secrets if they are missing, and renews certificates if it is time. It never replaces
/// keys that somebody else has just made. If only the authority exists, the job gets new keys and
/// keeps its id. Errors: kNotFound if there are no Secrets, but the job runs with some.
absl::Status EnsureSecrets(Cluster* cluster, const kubernetes::ManifestJob& job, JobStage stage,
                           const SayFn& say);

/// Makes or updates every object of the job except the Secrets and the Job.
absl::Status ApplyObjects(Cluster* cluster, const std::vector<nlohmann::json>& objects);

/// Deletes a Job that has ended, with its pods, and waits until it is gone. Its state stays.
absl::Status DeleteEndedJob(Cluster* cluster, const std::string& job, const JobLook& look,
                            const SayFn& say);

/// Makes the Job, and returns its UID. Errors: kAlreadyExists if somebody else was faster.
absl::StatusOr<std::string> CreateJob(Cluster* cluster, const std::vector<nlohmann::json>& objects);

}  // namespace muster::cluster
