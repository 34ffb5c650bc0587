#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

/// What the environment tells a process in a pod of a job on Kubernetes. The pod templates
/// (kubernetes/manifests) and PodHost set it.
struct PodEnvironment {
  std::string job_namespace;  // MUSTER_NAMESPACE
  std::string job_id;         // MUSTER_JOB_ID
  // These are for the job's own pod.
  std::string job;     // MUSTER_JOB_NAME: the name of the Job object
  std::string run_id;  // MUSTER_RUN_ID: its UID, so a new pod of the Job continues the run
  // These are for the pod of a worker or server.
  std::string node;    // MUSTER_NODE
  uint32_t start = 0;  // MUSTER_START
};

/// Returns the value of an environment variable; none if it is not set.
using ReadVariable = std::function<std::optional<std::string>(const std::string& name)>;
/// Reads this process's environment.
std::optional<std::string> ReadEnvironment(const std::string& name);

/// Reads what the job's own pod, or the pod of a node, needs. InvalidArgument names every variable
/// that is missing or wrong. Pure if `read` is.
absl::StatusOr<PodEnvironment> ParseJobPod(const ReadVariable& read);
absl::StatusOr<PodEnvironment> ParseNodePod(const ReadVariable& read);

}  // namespace muster
