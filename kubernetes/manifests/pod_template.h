#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "job/job_spec.h"
#include "kubernetes/manifests/objects.h"

/// The templates of a job's pods: what Muster needs, merged with the fragments of the job file.
/// Pure, thread-safe functions.
namespace muster::kubernetes {

/// The user and group of every process, and the group of mounted volumes.
inline constexpr int kPodUser = 10001;

/// {"worker": PodTemplateSpec, "ps": PodTemplateSpec}, which is pods.json of the ConfigMap. The
/// program that makes a pod adds its name, labels, owner, resources, MUSTER_NODE and MUSTER_START.
nlohmann::json PodTemplatesOf(const JobSpec& spec, const ManifestOptions& options);

/// The template for the pod of master and scaler.
nlohmann::json MasterTemplateOf(const JobSpec& spec, const ManifestOptions& options);

/// True if snapshots go to a volume that Muster mounts. False if they go to S3, or to an absolute
/// path of the user's own.
bool HasSnapshotVolume(const JobSpec& spec);

}  // namespace muster::kubernetes
