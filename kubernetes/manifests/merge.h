#pragma once

#include <nlohmann/json.hpp>

/// Merging of pod templates. Pure, thread-safe functions.
namespace muster::kubernetes {

/// Merges a fragment of a PodTemplateSpec into `base`, like a strategic merge patch of Kubernetes.
/// The fragment has priority. Groups are merged field by field, and null removes a field. Lists are
/// merged like this:
/// - containers, initContainers by name, ports of containers by containerPort, and
///   topologySpreadConstraints by topologyKey: entries of the same name are merged, others are
///   added.
/// - volumes, env, imagePullSecrets, schedulingGates, resourceClaims (name), volumeMounts
///   (mountPath), volumeDevices (devicePath), hostAliases (ip): an entry of the same name is
///   replaced, because its parts exclude each other.
/// - tolerations, envFrom, readinessGates, supplementalGroups: entries are added.
/// - any other list replaces the one in `base`.
void MergePodTemplate(const nlohmann::json& fragment, nlohmann::json* base);

}  // namespace muster::kubernetes
